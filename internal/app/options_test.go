package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/lockstep-cd/lockstep/internal/app"
)

// Every option that is wrong is named with its flag, before anything is started or written.
func TestWrongOptions(t *testing.T) {
	for want, change := range map[string]func(*app.Options){
		"--workers -1: is not between 1 and 1000":                            func(o *app.Options) { o.Work.Workers = -1 },
		"--workers 1001: is not between 1 and 1000":                          func(o *app.Options) { o.Work.Workers = 1001 },
		"--poll-interval 10ms: is shorter than a second":                     func(o *app.Options) { o.Sources.PollInterval = 10 * time.Millisecond },
		"--listen 8080: is no HOST:PORT, such as 127.0.0.1:8080 or :8080":    func(o *app.Options) { o.Listen = "8080" },
		"--local-repositories /none/such: is no folder of this machine":      func(o *app.Options) { o.Sources.LocalRoots = []string{"/none/such"} },
		"--local-repositories options_test.go: is no folder of this machine": func(o *app.Options) { o.Sources.LocalRoots = []string{"options_test.go"} },
	} {
		dir := filepath.Join(t.TempDir(), "data")
		o := app.Options{REST: &rest.Config{Host: "https://127.0.0.1:1"}, DataDir: dir}
		change(&o)
		_, err := app.New(o)
		if err == nil || err.Error() != want || !errors.Is(err, app.ErrOption) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the data directory was made", want)
		}
	}
}

func TestDataDirectoryCanNotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{REST: &rest.Config{Host: "https://127.0.0.1:1"}, DataDir: file, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || err.Error() != "--data-dir "+file+": not a directory" {
		t.Errorf("got %v", err)
	}
}

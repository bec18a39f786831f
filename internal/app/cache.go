package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"runtime/debug"

	"github.com/lockstep-cd/lockstep/internal/engine"
	"github.com/lockstep-cd/lockstep/internal/rendercache"
)

// openCache opens the rendering cache with the key that the cluster keeps. Without it everything works, and is rendered
// again after a restart: so a fault is told and no reason to stop.
func (a *App) openCache(ctx context.Context) *rendercache.Store {
	key, err := secretKey(ctx, a.client, a.opts.Namespace, cacheKeyField, rendercache.KeySize)
	if err == nil {
		var s *rendercache.Store
		s, err = rendercache.Open(rendercache.Options{
			Dir: filepath.Join(a.opts.DataDir, "renderings"), Key: key, Version: engine.KeptForm, Log: a.opts.Log.With("component", "rendercache"),
		})
		if err == nil {
			return s
		}
	}
	if ctx.Err() == nil {
		a.log.Warn("no rendering cache: everything is rendered again after a restart", "error", err)
	}
	return nil
}

// renderingVersion is another one for every build that could render something else.
func renderingVersion(version string) string {
	h := sha256.New()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	fmt.Fprintln(h, info.GoVersion)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			fmt.Fprintln(h, s.Key, s.Value)
		}
	}
	for _, d := range info.Deps {
		fmt.Fprintln(h, d.Path, d.Version)
		if d.Replace != nil {
			fmt.Fprintln(h, d.Replace.Path, d.Replace.Version)
		}
	}
	return version + " " + hex.EncodeToString(h.Sum(nil)[:8])
}

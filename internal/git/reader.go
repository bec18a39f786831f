package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// reader is one `git cat-file --batch-command` process of one mirror. One goroutine uses it at a time.
type reader struct {
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *bufio.Reader
	complaints *tail
	cancel     context.CancelFunc
}

// startReader starts a reader that lives until it is stopped.
func (s *Store) startReader(gitDir string) (*reader, error) {
	ctx, cancel := context.WithCancel(context.Background()) // ends with stop
	cmd := s.command(ctx, program{
		gitDir: gitDir, args: []string{"cat-file", "--batch-command"}, env: []string{"GIT_ALLOW_PROTOCOL=none"},
	})
	r := &reader{cmd: cmd, complaints: &tail{limit: maxStderr}, cancel: cancel}
	cmd.Stderr = r.complaints
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, errors.Join(err, in.Close())
	}
	r.in, r.out = in, bufio.NewReaderSize(out, 32<<10)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return r, nil
}

// stop ends the process and waits for it.
func (r *reader) stop() {
	r.cancel()
	_ = r.in.Close()
	_ = r.cmd.Wait() // it was killed: the error says so
}

// info asks for type and size of an object.
func (r *reader) info(name string) (header, error) {
	if _, err := fmt.Fprintf(r.in, "info %s\n", name); err != nil {
		return header{}, err
	}
	return r.header()
}

func (r *reader) header() (header, error) {
	line, err := r.out.ReadString('\n')
	if err != nil {
		return header{}, fmt.Errorf("cat-file ended: %w", err)
	}
	return parseHeader(line)
}

// errBig says that an object is larger than asked for. The reader that reported it has the content in its pipe and can
// not be used again.
type errBig struct{ size int64 }

func (e errBig) Error() string { return fmt.Sprintf("is %d bytes large", e.size) }

// contents reads an object of up to limit bytes and checks it against its hash.
func (r *reader) contents(name string, limit int64) (header, []byte, error) {
	if _, err := fmt.Fprintf(r.in, "contents %s\n", name); err != nil {
		return header{}, nil, err
	}
	h, err := r.header()
	if err != nil {
		return header{}, nil, err
	}
	if h.size > limit {
		return h, nil, errBig{h.size}
	}
	data := make([]byte, h.size+1) // a line feed follows
	if _, err := io.ReadFull(r.out, data); err != nil {
		return header{}, nil, fmt.Errorf("cat-file ended: %w", err)
	}
	data = data[:h.size]
	if h.hash != name || !h.verify(data) {
		return header{}, nil, fmt.Errorf("%s: content does not match: %w", name, ErrCorrupt)
	}
	return h, data, nil
}

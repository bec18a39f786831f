package tree

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// ArchiveLimits bound what an archive may unpack to.
type ArchiveLimits struct {
	// Size of all files together, in bytes.
	Size int64
	// Files is the number of files, folders and links.
	Files int
}

// ErrTooLarge says that an archive unpacks to more than its limits.
var ErrTooLarge = errors.New("unpacks to more than is allowed")

// Untar unpacks a tar archive, gzipped or not, into memory. Paths and links out of the archive are ErrOutside; links
// inside it become copies of what they lead to, and links that lead nowhere are left out. Devices and pipes are errors.
func Untar(r io.Reader, limits ArchiveLimits) (Map, error) {
	buffered := bufio.NewReader(r)
	var plain io.Reader = buffered
	if magic, err := buffered.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("archive: %w", err)
		}
		defer func() { _ = unzipped.Close() }()
		plain = unzipped
	}
	u := untar{files: Map{}, links: map[string]string{}, limits: limits}
	if err := u.read(tar.NewReader(plain)); err != nil {
		return nil, err
	}
	if err := u.follow(); err != nil {
		return nil, err
	}
	return u.files, u.checkFolders()
}

type untar struct {
	files  Map
	links  map[string]string
	limits ArchiveLimits
	size   int64
	count  int
}

func (u *untar) read(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		if u.count++; u.count > u.limits.Files {
			return fmt.Errorf("archive: %w: %d files", ErrTooLarge, u.limits.Files)
		}
		if err := u.entry(r, h); err != nil {
			return err
		}
	}
}

func (u *untar) entry(r io.Reader, h *tar.Header) error {
	name, err := archivePath(h.Name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		return nil
	case tar.TypeSymlink:
		u.links[name] = path.Join(path.Dir(name), h.Linkname)
		if path.IsAbs(h.Linkname) {
			u.links[name] = h.Linkname
		}
		return nil
	case tar.TypeLink:
		u.links[name] = path.Clean(h.Linkname)
		return nil
	case tar.TypeReg:
	default:
		return fmt.Errorf("archive: %s is neither a file, a folder nor a link", name)
	}
	left := u.limits.Size - u.size
	data, err := io.ReadAll(io.LimitReader(r, left+1))
	if err != nil {
		return fmt.Errorf("archive: %s: %w", name, err)
	}
	if int64(len(data)) > left {
		return fmt.Errorf("archive: %w: %d bytes", ErrTooLarge, u.limits.Size)
	}
	u.size += int64(len(data))
	u.files[name] = data
	delete(u.links, name)
	return nil
}

// archivePath is a name in an archive as a path of a tree. Archives made on Windows may have backslashes.
func archivePath(name string) (string, error) {
	if !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	drive := len(name) > 1 && name[1] == ':' && len(name) > 2 && name[2] == '/'
	if path.IsAbs(name) || drive {
		return "", fmt.Errorf("archive: path %s: %w", name, ErrOutside)
	}
	clean, err := Clean(name)
	if err != nil {
		return "", fmt.Errorf("archive: %w", err)
	}
	return clean, nil
}

// follow replaces links by what they lead to, in rounds, because a link may lead to or through another one.
func (u *untar) follow() error {
	for name, target := range u.links {
		if path.IsAbs(target) || target == ".." || strings.HasPrefix(target, "../") {
			return fmt.Errorf("archive: link %s to %s: %w", name, target, ErrOutside)
		}
	}
	for round := 0; round < maxLinks && len(u.links) > 0; round++ {
		progress := false
		for name, target := range u.links {
			done, err := u.copyTo(name, target)
			if err != nil {
				return err
			}
			if done {
				delete(u.links, name)
				progress = true
			}
		}
		if !progress {
			return nil
		}
	}
	return nil
}

// copyTo lays what is at target in at name and tells whether there was something. A folder that still holds links waits.
func (u *untar) copyTo(name, target string) (bool, error) {
	if data, ok := u.files[target]; ok {
		u.files[name] = data
		return true, nil
	}
	prefix := target + "/"
	if target == "." || strings.HasPrefix(name, prefix) {
		return false, nil // a folder that would hold itself
	}
	for link := range u.links {
		if strings.HasPrefix(link, prefix) {
			return false, nil
		}
	}
	found := Map{}
	for p, data := range u.files {
		if rest, ok := strings.CutPrefix(p, prefix); ok {
			found[path.Join(name, rest)] = data
		}
	}
	if u.count += len(found); u.count > u.limits.Files {
		return false, fmt.Errorf("archive: %w: %d files", ErrTooLarge, u.limits.Files)
	}
	for p, data := range found {
		u.files[p] = data
	}
	return len(found) > 0, nil
}

func (u *untar) checkFolders() error {
	for p := range u.files {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := u.files[dir]; ok {
				return fmt.Errorf("archive: %s is both a file and a folder", dir)
			}
		}
	}
	return nil
}

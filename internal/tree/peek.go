package tree

// Peek is f without its recorder: what is read of it is not noted. A tree that is not recorded is returned as it is. Who
// sends content ahead, to somebody who may need it, reads it so; Used notes it once it was needed.
func Peek(f FS) FS {
	if r, ok := f.(recorder); ok {
		return r.base
	}
	return f
}

// Used notes, in the set of a recorder, that the file name was read and held data, as reading it would have.
func Used(f FS, name string, data []byte) {
	if r, ok := f.(recorder); ok {
		r.noteFile(name, data)
	}
}

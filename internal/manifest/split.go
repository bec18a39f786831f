package manifest

import "bytes"

// document is the text of one YAML document and the line of the file it starts at, from 1.
type document struct {
	text []byte
	line int
	// content is the first line with something other than comments and markers.
	content int
}

// splitDocuments cuts a stream at its document markers. YAML gives "---" and "..." at the start of a line their meaning
// wherever they stand, in block and quoted text too, so that the cut needs no knowledge of what lies around it; indented
// they are text. The "---" stays with the document that follows, as directives and a value on its line belong to it.
func splitDocuments(data []byte) []document {
	s := splitter{line: 1, start: 1}
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 {
			end = len(data)
		}
		s.next(data[:end])
		data = data[end:]
	}
	s.flush()
	return s.done
}

type splitter struct {
	done []document
	text []byte
	// line is the current line; start and content are those of the current document.
	line, start, content int
	// marked tells that the current document had its "---", directed that it had a directive.
	marked, directed bool
}

func (s *splitter) next(line []byte) {
	trimmed := bytes.TrimSpace(line)
	// Files that were joined by hand have byte order marks in the middle.
	if plain := bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")); isMarker(plain, "---") {
		line = plain
		if s.marked || s.content > 0 {
			s.flush()
		}
		s.marked = true
		if rest := bytes.TrimSpace(line[3:]); len(rest) > 0 && rest[0] != '#' {
			s.content = s.line
		}
	} else if s.content == 0 && len(trimmed) > 0 && trimmed[0] != '#' {
		switch {
		case line[0] == '%' && !s.marked:
			s.directed = true
		case !s.endsAgain(line):
			s.content = s.line
		}
	}
	s.text = append(s.text, line...)
	s.line++
	switch {
	case s.endsAgain(line):
		last := &s.done[len(s.done)-1]
		last.text = append(last.text, s.text...)
		s.text, s.start = nil, s.line
	case isMarker(line, "..."):
		s.flush()
	}
}

// endsAgain tells that the line ends a document that has ended already, which YAML allows; it is no document of its own.
func (s *splitter) endsAgain(line []byte) bool {
	return isMarker(line, "...") && len(s.done) > 0 && s.content == 0 && !s.marked && !s.directed
}

func (s *splitter) flush() {
	if len(s.text) > 0 {
		s.done = append(s.done, document{text: s.text, line: s.start, content: max(s.content, s.start)})
	}
	s.text, s.start, s.content, s.marked, s.directed = nil, s.line, 0, false, false
}

func isMarker(line []byte, marker string) bool {
	if !bytes.HasPrefix(line, []byte(marker)) {
		return false
	}
	return len(line) == len(marker) || bytes.IndexByte([]byte(" \t\r\n"), line[len(marker)]) >= 0
}

package tfbundle

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// StateFile is the name of the file by which TensorFlow finds the newest checkpoint:
// tensorflow/python/training/checkpoint_state.proto as a text proto, which names
// prefixes, absolute or relative to the directory.
const StateFile = "checkpoint"

// CheckpointState is the content of a StateFile.
type CheckpointState struct {
	Current string   // model_checkpoint_path
	All     []string // all_model_checkpoint_paths, oldest first
}

// ParseState parses a StateFile.
func ParseState(text []byte) (CheckpointState, error) {
	var s CheckpointState
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
				continue
			}
			return s, fmt.Errorf("the file %s has a line that is none: %q", StateFile, line)
		}
		if key != "model_checkpoint_path" && key != "all_model_checkpoint_paths" {
			continue // times
		}
		path, err := unquote(strings.TrimSpace(value))
		if err != nil {
			return s, fmt.Errorf("the file %s is not readable at %q: %w", StateFile, line, err)
		}
		if key == "model_checkpoint_path" {
			s.Current = path
		} else {
			s.All = append(s.All, path)
		}
	}
	if s.Current == "" {
		return s, fmt.Errorf("the file %s names no checkpoint", StateFile)
	}
	return s, nil
}

// Bytes returns the file's text.
func (s CheckpointState) Bytes() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "model_checkpoint_path: %s\n", quote(s.Current))
	for _, p := range s.All {
		fmt.Fprintf(&b, "all_model_checkpoint_paths: %s\n", quote(p))
	}
	return []byte(b.String())
}

var errQuote = errors.New("it is not a quoted string")

// unquote reads a string of a text proto: C's escapes, in either quote.
func unquote(s string) (string, error) {
	if len(s) < 2 || s[0] != '"' && s[0] != '\'' || s[len(s)-1] != s[0] {
		return "", errQuote
	}
	quote, s := s[0], s[1:len(s)-1]
	var b []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return "", errQuote
		case s[i] != '\\':
			b = append(b, s[i])
			continue
		}
		if i++; i == len(s) {
			return "", errQuote
		}
		if simple := strings.IndexByte("abfnrtv\\'\"?", s[i]); simple >= 0 {
			b = append(b, "\a\b\f\n\r\t\v\\'\"?"[simple])
			continue
		}
		digits, base := s[i:min(i+3, len(s))], 8
		if s[i] == 'x' || s[i] == 'X' {
			digits, base = s[i+1:min(i+3, len(s))], 16
			i++
		}
		n := 0
		for n < len(digits) && strings.IndexByte("0123456789abcdefABCDEF", digits[n]) >= 0 && (base == 16 || digits[n] < '8') {
			n++
		}
		v, err := strconv.ParseUint(digits[:n], base, 8)
		if err != nil {
			return "", errQuote
		}
		b = append(b, byte(v))
		i += n - 1
	}
	return string(b), nil
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\'':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

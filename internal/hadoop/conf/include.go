package conf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Limits of XInclude.
const (
	maxIncludeDepth = 16
	maxIncluded     = 256 // files, in all
)

// reader reads a site file and those that it includes.
type reader struct {
	properties []property
	included   int
	left       int64 // bytes that may be read yet
}

// file reads one file, which is depth includes below the first. Its properties come after
// those that were read before.
func (r *reader) file(path string, depth int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > r.left {
		return fmt.Errorf("it is too large: site files are %d MB together at most", maxFile>>20)
	}
	b, err := io.ReadAll(io.LimitReader(f, r.left))
	if err != nil {
		return err
	}
	r.left -= int64(len(b))
	return r.parse(b, path, depth)
}

// include reads what an <xi:include> names, in its place. Where the file cannot be read,
// the properties in its <xi:fallback> stand for it, as with Configuration.Parser; without
// one that is an error. Files are named by path or by file: URI; a path is relative to the
// file that names it.
func (r *reader) include(d *xml.Decoder, start xml.StartElement, from string, depth int) error {
	href := strings.TrimSpace(attr(start, "href"))
	path := strings.TrimPrefix(strings.TrimPrefix(href, "file:"), "//")
	var failed error
	switch {
	case href == "" || strings.Contains(path, "://"):
		failed = errors.New("only files can be included")
	case depth >= maxIncludeDepth:
		return fmt.Errorf("%s includes %s, %d files deep: does one include itself?", from, href, depth)
	case r.included >= maxIncluded:
		return fmt.Errorf("more than %d files are included", maxIncluded)
	default:
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(from), path)
		}
		r.included++
		if info, err := os.Stat(path); err != nil {
			failed = err
		} else if !info.Mode().IsRegular() {
			failed = errors.New("it is no file")
		} else if err := r.file(path, depth+1); err != nil {
			return fmt.Errorf("%s, which %s includes: %w", path, from, err)
		}
	}
	fallback, err := r.fallback(d, from, depth, failed != nil)
	if err == nil && failed != nil && !fallback {
		err = fmt.Errorf("%s includes %q, which cannot be read: %w", from, href, failed)
	}
	return err
}

// fallback reads to the end of an <xi:include>, and takes the properties of its
// <xi:fallback> if they are needed. It reports whether there is one.
func (r *reader) fallback(d *xml.Decoder, from string, depth int, needed bool) (found bool, err error) {
	for {
		t, err := d.Token()
		if err != nil {
			return found, notWellFormed(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if t.Name.Local != "fallback" || !needed {
				if err := d.Skip(); err != nil {
					return found, notWellFormed(err)
				}
				continue
			}
			found = true
			if err := r.elements(d, from, depth); err != nil {
				return found, err
			}
		case xml.EndElement:
			return found, nil
		}
	}
}

func notWellFormed(err error) error { return fmt.Errorf("not well-formed XML: %w", err) }

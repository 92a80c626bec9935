// Package archive opens the archives that a job can bring: tar, also compressed by gzip or
// bzip2, and zip. They are recognized by their content.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"os"
)

// Archive is an open archive: one of its fields is set.
type Archive struct {
	Zip *zip.Reader
	Tar *tar.Reader // at its beginning
}

// Open opens an archive that f, at its beginning, has. What is no archive may be a tar whose
// first header cannot be read.
func Open(f *os.File) (Archive, error) {
	r := bufio.NewReader(f)
	head, _ := r.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte("PK")):
		st, err := f.Stat()
		if err != nil {
			return Archive{}, err
		}
		z, err := zip.NewReader(f, st.Size())
		return Archive{Zip: z}, err
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return Archive{}, err
		}
		return Archive{Tar: tar.NewReader(z)}, nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return Archive{Tar: tar.NewReader(bzip2.NewReader(r))}, nil
	}
	return Archive{Tar: tar.NewReader(r)}, nil
}

// Check returns an error unless a file is an archive that has something in it. Of a tar it reads
// the first header only.
func Check(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	a, err := Open(f)
	empty := false
	switch {
	case err != nil:
		return err
	case a.Zip != nil:
		empty = len(a.Zip.File) == 0
	default:
		_, err = a.Tar.Next()
		empty = errors.Is(err, io.EOF)
	}
	if empty {
		return errors.New("it is empty")
	}
	return err
}

package faults

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// writeZeros writes a tar.gz with one file of zeros. Its size is a multiple of pieceSize.
// A piece is compressed once: what follows each other in gzip is one file (RFC 1952, 2.2).
func writeZeros(path, name string, size int64) error {
	const pieceSize = 64 << 20
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	first, err := gzipped(head.Bytes())
	if err != nil {
		return err
	}
	piece, err := gzipped(make([]byte, pieceSize))
	if err != nil {
		return err
	}
	last, err := gzipped(make([]byte, 1024)) // two empty blocks end it
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making a large archive: %w", err)
	}
	parts := []io.Reader{bytes.NewReader(first)}
	for range size / pieceSize {
		parts = append(parts, bytes.NewReader(piece))
	}
	_, err = io.Copy(f, io.MultiReader(append(parts, bytes.NewReader(last))...))
	return errors.Join(err, f.Close())
}

func gzipped(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// Package localfile reads local files until a context ends.
package localfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Open opens a file. Its reads fail after ctx has ended.
func Open(ctx context.Context, name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &file{ctx, f}, nil
}

type file struct {
	ctx context.Context
	f   *os.File
}

func (f *file) Read(b []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.f.Read(b)
}

func (f *file) Close() error { return f.f.Close() }

// Digest returns the SHA-256 digest of a file in hexadecimal.
func Digest(ctx context.Context, name string) (string, error) {
	f, err := Open(ctx, name)
	if err != nil {
		return "", fmt.Errorf("read an input of the job: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read an input of the job, %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

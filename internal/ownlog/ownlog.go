// Package ownlog copies what this process writes to its standard error, where that is a
// file, to a place where it can still be read when the file cannot. On a cluster that file is
// in the log directory of a container, on a node that users cannot read from.
//
// What the process writes as it crashes is not copied: only the file has that.
package ownlog

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// maxCopied bounds the copy.
	maxCopied = 32 << 20
	// chunk bounds what is appended at once.
	chunk = 256 << 10
	// appendTime bounds one append, and finalTime the copying at the end.
	appendTime = time.Minute
	finalTime  = 3 * time.Second
)

// Options say how to copy.
type Options struct {
	// Append appends to the copy, which is created if it is missing, and makes that visible.
	// It is called by one goroutine at a time.
	Append func(ctx context.Context, text []byte) error
	// First is how long after the start the first part is copied, and Every how long after
	// another part the next, if there is anything new.
	First, Every time.Duration
	// File is the file; empty: standard error.
	File string
}

// Copy copies in the background until Stop.
type Copy struct {
	o      Options
	file   *os.File // nil: there is nothing to copy
	copied int64
	warned bool
	stop   context.CancelFunc
	done   chan struct{}
}

// Start begins to copy, from the beginning of the file.
func Start(o Options) *Copy {
	c := &Copy{o: o, done: make(chan struct{})}
	name := o.File
	if name == "" {
		name = "/proc/self/fd/2"
	}
	f, err := os.Open(name)
	if err == nil {
		if info, statErr := f.Stat(); statErr == nil && info.Mode().IsRegular() {
			c.file = f
		} else {
			f.Close() // a terminal or a pipe, which is not to be read from
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	go c.run(ctx)
	return c
}

func (c *Copy) run(ctx context.Context) {
	defer close(c.done)
	if c.file == nil {
		return
	}
	timer := time.NewTimer(c.o.First)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := c.copy(ctx, appendTime); err != nil && !c.warned && ctx.Err() == nil {
			c.warned = true
			logrus.WithError(err).Warn("cannot copy this log into the job's directory, for yarn-submit logs; trying again")
		}
		timer.Reset(c.o.Every)
	}
}

// Stop copies the rest and then last, which the file does not have, and ends. It takes no
// more than a few seconds; after the first call it does nothing.
func (c *Copy) Stop(last string) {
	c.stop()
	<-c.done
	if c.file == nil {
		return
	}
	defer func() {
		c.file.Close()
		c.file = nil
	}()
	ctx, cancel := context.WithTimeout(context.Background(), finalTime)
	defer cancel()
	if err := c.copy(ctx, finalTime); err == nil && last != "" {
		_ = c.o.Append(ctx, []byte(last)) // its reader is told of it otherwise, too
	}
}

// copy copies what is new.
func (c *Copy) copy(ctx context.Context, limit time.Duration) error {
	info, err := c.file.Stat()
	if err != nil || info.Size() <= c.copied {
		return err
	}
	buffer := make([]byte, min(chunk, info.Size()-c.copied))
	for c.copied < maxCopied {
		n, err := c.file.ReadAt(buffer, c.copied)
		if n == 0 {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		text := buffer[:n]
		if c.copied+int64(n) >= maxCopied {
			text = append(text, "\n[... the rest is only in the log directory of this container ...]\n"...)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		err = c.o.Append(ctx, text)
		cancel()
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", c.copied, err)
		}
		c.copied += int64(n)
	}
	return nil
}

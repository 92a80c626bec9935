package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/logtimes"
	"holdfast/proto"
)

const (
	copyEvery  = time.Second
	copyRetry  = 5 * time.Second
	copyMost   = 1 << 20 // bytes that wait for the store
	finalLimit = 5 * time.Second
)

// copied is a part of the output on its way to the store, and when it was written.
type copied struct {
	text  []byte
	parts []part // as package logtimes has them, in order
}

// part begins at a byte of the text.
type part struct {
	begin int
	at    time.Time
}

// prepend puts what comes before in front.
func (c *copied) prepend(before copied) {
	parts := before.parts
	for _, p := range c.parts {
		parts = append(parts, part{len(before.text) + p.begin, p.at})
	}
	c.text, c.parts = append(before.text, c.text...), parts
}

// limit drops what exceeds copyMost at the beginning, and returns how many bytes.
func (c *copied) limit() (dropped int64) {
	over := len(c.text) - copyMost
	if over <= 0 {
		return 0
	}
	c.text = append(c.text[:0], c.text[over:]...)
	var parts []part
	for _, p := range c.parts {
		p.begin = max(0, p.begin-over)
		if n := len(parts); n > 0 && p.begin == 0 {
			parts = parts[:n-1] // nothing is left of it
		}
		parts = append(parts, p)
	}
	c.parts = parts
	return int64(over)
}

// next takes what is to be copied to the store; end: no more will follow.
func (o *Output) next() (c copied, end bool) {
	select {
	case <-o.read:
		end = true
	default:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c = o.pending
	if o.lost > 0 {
		c.prepend(copied{text: fmt.Appendf(nil, "[... %d bytes are left out here: the store did not keep up; they are in %s on the task's host ...]\n", o.lost, o.local.Name())})
	}
	o.pending, o.lost = copied{}, 0
	return c, end
}

func (o *Output) putBack(c copied) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending.prepend(c)
	o.lost += o.pending.limit()
}

// destination is the copy of the output in the job's directory, and the file with its times.
type destination struct {
	log, times store.Appender
	size       int64 // of the copy
}

// openDestination opens the copy called name. Without the file with the times it is still
// a copy.
func openDestination(ctx context.Context, s store.Store, name string) (*destination, error) {
	if err := store.MkdirAll(ctx, s, path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	d := &destination{}
	switch info, err := s.Stat(ctx, name); {
	case err == nil:
		d.size = info.Size
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	var err error
	if d.log, err = s.Append(ctx, name, 0o600); err != nil {
		return nil, err
	}
	d.times, _ = s.Append(ctx, proto.LogTimesName(name), 0o600)
	return d, nil
}

// write writes the times first, so that who finds something in the log finds its time, too.
func (d *destination) write(c copied) error {
	if d.times != nil && len(c.parts) > 0 {
		var lines []byte
		for _, p := range c.parts {
			lines = logtimes.AppendPart(lines, d.size+int64(p.begin), p.at)
		}
		if _, err := d.times.Write(lines); err != nil {
			return err
		}
		if err := d.times.Flush(); err != nil {
			return err
		}
	}
	if _, err := d.log.Write(c.text); err != nil {
		return err
	}
	d.size += int64(len(c.text))
	return d.log.Flush()
}

func (d *destination) close() error {
	if d.times != nil {
		_ = d.times.Close()
	}
	return d.log.Close()
}

// CopyTo copies the output to the store that open returns until all has been read, and for
// finalLimit longer if the store fails.
func (o *Output) CopyTo(open func(context.Context) (store.Store, error)) {
	var to *destination
	warned := false
	attempt := func(c copied) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if to == nil {
			s, err := open(ctx)
			if err != nil {
				return err
			}
			if to, err = openDestination(ctx, s, o.name); err != nil {
				return err
			}
		}
		return to.write(c)
	}
	var deadline time.Time
	wait := time.NewTimer(copyEvery)
	defer wait.Stop()
	read := o.read
	for {
		select {
		case <-wait.C:
		case <-read:
			read = nil
			deadline = time.Now().Add(finalLimit)
		}
		c, end := o.next()
		pause := copyEvery
		if len(c.text) > 0 {
			if err := attempt(c); err != nil {
				if !warned {
					warned = true
					o.log.WithError(err).Warn("copying the task's output to the job's directory; trying again")
				}
				if to != nil {
					_ = to.close()
					to = nil
				}
				o.putBack(c)
				pause = copyRetry
				if end && time.Now().Add(pause).After(deadline) {
					return
				}
				wait.Reset(min(pause, time.Second))
				continue
			}
		}
		if end {
			if to != nil {
				if err := to.close(); err != nil {
					o.log.WithError(err).Warn("closing the copy of the task's output")
				}
			}
			return
		}
		wait.Reset(pause)
	}
}

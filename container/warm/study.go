package warm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"holdfast/container/sandbox"
	"holdfast/internal/backoff"
	"holdfast/internal/proc"
)

// study waits until the attempt p has settled, and returns the profile with which it has
// imported the module; false if it has not imported it.
func (s *Standby) study(ctx context.Context, c sandbox.Command, p *sandbox.Process, from *interpreter) (ImportProfile, bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-p.Done() // at the latest when the box is closed
		cancel()
	}()
	if from != nil {
		select {
		case <-from.imported:
		case <-ctx.Done():
		}
		return from.profile, backoff.Sleep(ctx, s.o.After)
	}
	n, err := s.readNote(ctx, c, p)
	switch {
	case ctx.Err() != nil:
		return ImportProfile{}, false
	case err != nil:
		s.giveUp("making it: " + err.Error())
		return ImportProfile{}, false
	case n.Refused != "":
		s.Refuse(n.Refused)
		return ImportProfile{}, false
	}
	s.setKnown(Known{ImportProfile: n.ImportProfile})
	return n.ImportProfile, backoff.Sleep(ctx, s.o.After)
}

// note is what the start-up file wrote about the main program of an attempt.
type note struct {
	ImportProfile
	Refused string `json:"refused"`
}

// readNote waits for the note of the process that c started.
func (s *Standby) readNote(ctx context.Context, c sandbox.Command, p *sandbox.Process) (note, error) {
	file := filepath.Join(s.o.Notes, fmt.Sprintf("imported-%d.json", p.Pid))
	for {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			if !backoff.Sleep(ctx, checkEvery/4) {
				return note{}, ctx.Err()
			}
			continue
		}
		if err != nil {
			return note{}, err
		}
		_ = os.Remove(file) // it may hold secrets of the script
		// A shell that does something and then becomes Python must not do it twice.
		argv, _ := proc.CommandLine(p.Pid)
		if len(argv) == 0 { // the process has just ended, perhaps before it wrote the file
			<-ctx.Done()
			return note{}, ctx.Err()
		}
		if !slices.Equal(argv, c.Argv) {
			return note{Refused: "the task's command does more than run Python"}, nil
		}
		var n note
		err = json.Unmarshal(b, &n)
		return n, err
	}
}

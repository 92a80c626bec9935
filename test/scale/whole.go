package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/proto"
)

// comeAgain counts the agents that say that they come again: their connections broke. It
// passes on what it reads.
type comeAgain struct {
	mu     sync.Mutex
	agents int
}

// Write implements io.Writer.
func (c *comeAgain) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents += bytes.Count(text, []byte(comesAgain))
	return os.Stderr.Write(text)
}

// comesAgain is what an agent says then.
const comesAgain = "; it comes again\n"

func (c *comeAgain) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agents
}

// incidentsMost is how many losses a job's status has at most.
const incidentsMost = 500

// checkWhole waits until the status that is kept for others has all tasks, which run, and an
// incident of each that was lost.
func checkWhole(ctx context.Context, dir string, tasks, lost int) error {
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; {
		if last = whole(dir, tasks, min(lost, incidentsMost)); last == nil {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return errors.Join(err, last)
		}
	}
	return last
}

func whole(dir string, tasks, lost int) error {
	text, err := os.ReadFile(filepath.Join(dir, proto.StatusFile))
	if err != nil {
		return err
	}
	s := &proto.JobStatus{}
	if err := protojson.Unmarshal(text, s); err != nil {
		return err
	}
	running := 0
	for _, t := range s.Tasks {
		if t.State == proto.TaskState_TASK_STATE_RUNNING && t.Pid != 0 {
			running++
		}
	}
	back := 0
	for _, i := range s.Incidents {
		if i.RecoveredUnixMs != 0 {
			back++
		}
	}
	if len(s.Tasks) != tasks || running != tasks || len(s.Incidents) != lost || back != lost {
		return fmt.Errorf("the status has %d tasks, of which %d run, and %d incidents, of which %d are over; want %d tasks and %d incidents", len(s.Tasks), running, len(s.Incidents), back, tasks, lost)
	}
	return nil
}

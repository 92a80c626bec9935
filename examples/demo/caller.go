package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/proto"
)

// caller runs yarn-submit.
type caller struct {
	program string
	dir     string
	env     []string
}

func (c caller) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	// A Ctrl-C in the terminal is for the demo, which ends the job itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// call runs one command to its end and gives what it printed.
func (c caller) call(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := c.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("yarn-submit %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// submit starts a job and gives its id.
func (c caller) submit(ctx context.Context, args []string) (string, error) {
	out, err := c.call(ctx, append([]string{"run", "--detach", "--output", "json"}, args...)...)
	if err != nil {
		return "", err
	}
	var answer struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.ID == "" {
		return "", fmt.Errorf("yarn-submit run gave no job: %s", out)
	}
	return answer.ID, nil
}

func (c caller) status(ctx context.Context, job string) (*proto.JobStatus, error) {
	out, err := c.call(ctx, "status", job, "--output", "json")
	if err != nil {
		return nil, err
	}
	s := &proto.JobStatus{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(out), s); err != nil {
		return nil, fmt.Errorf("the status of %s: %w", job, err)
	}
	return s, nil
}

// follow sends what a task prints, as it comes, until the job ends. The
// channel is closed at the end.
func (c caller) follow(ctx context.Context, job, task string) (<-chan string, error) {
	cmd := c.command(ctx, "logs", "--follow", "--output", "json", job, task)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		defer func() { _ = cmd.Wait() }() // what it could not say, the job's status says
		for r := bufio.NewScanner(out); r.Scan(); {
			var l struct {
				Text string `json:"text"`
			}
			if json.Unmarshal(r.Bytes(), &l) != nil {
				continue
			}
			select {
			case lines <- l.Text:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines, nil
}

// kill ends a process that status named.
func kill(pid int32) error {
	if pid <= 1 {
		return errors.New("it has no process")
	}
	return syscall.Kill(int(pid), syscall.SIGKILL)
}

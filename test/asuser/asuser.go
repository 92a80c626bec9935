// Package asuser calls yarn-submit as users do, for what shows, measures and
// breaks jobs.
package asuser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"holdfast/proto"
)

// Caller is where and with what yarn-submit is called. Its methods may be called
// from many goroutines.
type Caller struct {
	Submit  string   // the binary
	ConfDir string   // HADOOP_CONF_DIR; empty: this process's
	Home    string   // HOLDFAST_HOME
	Dir     string   // the working directory; empty: this process's
	Env     []string // more environment
}

// Command returns a process of yarn-submit, not yet started.
func (c Caller) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Submit, args...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), "HOLDFAST_HOME="+c.Home)
	if c.ConfDir != "" {
		cmd.Env = append(cmd.Env, "HADOOP_CONF_DIR="+c.ConfDir)
	}
	cmd.Env = append(cmd.Env, c.Env...)
	// A Ctrl-C in the terminal is for the caller, which ends its job itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// Call runs yarn-submit to its end, within two minutes, and returns what it
// prints. What it says on standard error is in the error.
func (c Caller) Call(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := c.Command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("yarn-submit %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// Run submits a job and returns its id.
func (c Caller) Run(ctx context.Context, args ...string) (string, error) {
	out, err := c.Call(ctx, append([]string{"run", "--detach", "--output", "json"}, args...)...)
	if err != nil {
		return "", err
	}
	var answer struct{ ID string }
	if err := json.Unmarshal(out, &answer); err != nil || answer.ID == "" {
		return "", fmt.Errorf("reading the job's id from %q: %w", out, err)
	}
	return answer.ID, nil
}

// Status is a job's state.
func (c Caller) Status(ctx context.Context, job string) (*proto.JobStatus, error) {
	out, err := c.Call(ctx, "status", job, "--output", "json")
	if err != nil {
		return nil, err
	}
	s := &proto.JobStatus{}
	if err := proto.FromJSON(out, s); err != nil {
		return nil, fmt.Errorf("reading the job's status: %w", err)
	}
	return s, nil
}

// Follow sends what a task prints, line by line as it comes, until the job or
// ctx ends; then the channel is closed.
func (c Caller) Follow(ctx context.Context, job, task string) (<-chan string, error) {
	cmd := c.Command(ctx, "logs", "--follow", "--output", "json", job, task)
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
			var l struct{ Text string }
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

// UI serves the pages of all jobs until stop is called, and returns the address to open.
func (c Caller) UI(ctx context.Context, args ...string) (address string, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := c.Command(ctx, append([]string{"ui", "--output", "json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	stop = func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}
	var answer struct{ URL string }
	if err := json.NewDecoder(out).Decode(&answer); err != nil {
		stop()
		return "", nil, fmt.Errorf("reading the address that yarn-submit ui prints: %w", err)
	}
	return answer.URL, stop, nil
}

// Command scale runs one application master with as many tasks as are asked
// for, and prints what that costs it beside what is aimed at. It fails if a
// task takes more memory than that. On a busy machine agents lose
// their connections while they start, and those that come again take more: it
// needs a quiet one. The master is the real one, in a process of its own; so
// are the agents' connections to it, each with its own TLS connection and its
// beats. Only what is beyond them is a model: a cluster that gives every
// container at once, and tasks that do nothing. The parent starts the processes
// and passes on, by lines on pipes, what the cluster does:
//
//	master -> parent   address HOST:PORT, launch CONTAINER, running N, losing N, asked N, pages URL
//	parent -> master   phase NAME, lose N
//	parent -> agents   launch CONTAINER, end CONTAINER
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/jobtls"
)

func main() {
	tasks := flag.Int("tasks", 10000, "how `many` tasks")
	lose := flag.Int("lose", 500, "how `many` of them to lose at once")
	agents := flag.Int("agents", 4, "`processes` that the agents share")
	rest := flag.Duration("rest", 30*time.Second, "how `long` to look at a job in which nothing happens")
	pace := flag.Duration("pace", 3*time.Millisecond, "`time` between two containers that the cluster starts: agents and master share a machine here")
	bare := flag.Bool("bare", false, "in place of a master, measure a gRPC server that only has the connections: nothing with them takes less memory")
	pages := flag.Int("pages", 0, "in place of losing tasks, measure the job's pages, with so `many` of them open")
	role := flag.String("as", "", "master, bare or agents: what the parent starts")
	dir := flag.String("dir", "", "the job's `directory`, of the parent's children")
	profile := flag.String("profile", "", "`directory` for the master's CPU and heap profiles, of each phase")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch *role {
	case "master":
		err = serve(ctx, *dir, *tasks, *pages, *pace, *profile, runMaster)
	case "bare":
		err = serve(ctx, *dir, *tasks, *pages, *pace, *profile, runBare)
	case "agents":
		err = runAgents(ctx, *dir)
	default:
		err = measure(ctx, *bare, *tasks, *lose, *pages, *agents, *rest, *pace, *profile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// child is one of our own processes, spoken to by lines.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(ctx context.Context, args ...string) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, exe, args...)}
	c.cmd.Stderr = &again
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	return c, c.cmd.Start()
}

// again is what all children say on stderr.
var again comeAgain

func (c *child) say(format string, args ...any) { fmt.Fprintf(c.in, format+"\n", args...) }

// measure runs the whole and prints the figures.
func measure(ctx context.Context, bare bool, tasks, lose, pages, processes int, rest, pace time.Duration, profile string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the children
	dir, err := os.MkdirTemp("", "holdfast-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	keys, err := jobtls.New("scale")
	if err != nil {
		return err
	}
	for name, k := range map[string]jobtls.Keys{"master": keys.Master, "agent": keys.Agent} {
		if err := os.WriteFile(filepath.Join(dir, name+".keys"), k.Marshal(), 0o600); err != nil {
			return err
		}
	}
	as := "master"
	if bare {
		as = "bare"
	}
	master, err := start(ctx, "-as", as, "-dir", dir, "-tasks", strconv.Itoa(tasks), "-pages", strconv.Itoa(pages), "-pace", pace.String(), "-profile", profile)
	if err != nil {
		return err
	}
	began := time.Now()
	var agents []*child
	for range processes {
		a, err := start(ctx, "-as", "agents", "-dir", dir)
		if err != nil {
			return err
		}
		agents = append(agents, a)
	}
	said := make(chan []string, 1000)
	go func() { // ends with the master
		defer close(said)
		for master.out.Scan() {
			f := strings.Fields(master.out.Text())
			if n, err := strconv.Atoi(strings.TrimPrefix(f[1], "c")); f[0] == "launch" && err == nil {
				agents[n%processes].say("launch %s", f[1])
				continue
			}
			if f[0] == "address" {
				for _, a := range agents {
					a.say("address %s", f[1])
				}
				continue
			}
			select {
			case said <- f:
			case <-ctx.Done():
				return
			}
		}
	}()
	until := func(kind, what string) (object string, err error) {
		for {
			select {
			case f, ok := <-said:
				if !ok {
					return "", fmt.Errorf("the master has ended before it %s", what)
				}
				if f[0] == kind && (kind != "running" || f[1] == strconv.Itoa(tasks)) {
					return f[1], nil
				}
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	}
	phase := func(name string) error {
		master.say("phase %s", name)
		if profile == "" {
			return nil
		}
		return sleep(ctx, 3*time.Second) // a profile of the heap takes a moment
	}
	pid := master.cmd.Process.Pid
	address := ""
	if pages > 0 {
		if address, err = until("pages", "served its pages"); err != nil {
			return err
		}
	}
	r := report{tasks: tasks, before: load()}
	if _, err := until("running", "ran all tasks"); err != nil {
		return err
	}
	r.started, r.startCPU = time.Since(began), cpu(pid)

	if err := sleep(ctx, 10*time.Second); err != nil { // until what the start has left is done
		return err
	}
	if err := phase("rest"); err != nil {
		return err
	}
	from, used := time.Now(), cpu(pid)
	if r.memory, err = usualMemory(ctx, pid, rest); err != nil {
		return err
	}
	r.rest = float64(cpu(pid)-used) / float64(time.Since(from))
	_, r.peak = memory(pid)
	r.again = again.count()
	for _, name := range []string{"status.json", "journal/1.json"} {
		if i, err := os.Stat(filepath.Join(dir, name)); err == nil {
			r.sizes = append(r.sizes, fmt.Sprintf("%s %.1f MB", name, float64(i.Size())/1e6))
		}
	}

	if bare {
		r.printBare(os.Stdout)
		return phase("end")
	}
	if pages > 0 {
		shown, err := measurePages(ctx, pid, address, pages, r.rest, r.memory, rest)
		if err != nil {
			return err
		}
		r.print(os.Stdout)
		shown.print(os.Stdout)
		return phase("end")
	}
	if err := phase("loss"); err != nil {
		return err
	}
	lost := time.Now()
	master.say("lose %d", lose)
	if _, err := until("losing", "counted what is lost"); err != nil { // some is asked for as soon as its agent is gone
		return err
	}
	for i := range lose {
		n := i + 1 // containers are numbered as they were asked for, from 1
		agents[n%processes].say("end c%d", n)
	}
	if _, err := until("asked", "asked for what was lost"); err != nil {
		return err
	}
	r.lost, r.asked = lose, time.Since(lost)
	if _, err := until("running", "ran all tasks again"); err != nil {
		return err
	}
	r.back = time.Since(lost)
	r.print(os.Stdout)
	return errors.Join(r.check(), checkWhole(ctx, dir, tasks, lose), phase("end"))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

package jobs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/proto"
)

// FollowOptions configure Follow.
type FollowOptions struct {
	Out   io.Writer
	Width int // of Out's terminal; 0: no terminal, nobody is asked
	// In is where the answer to an interrupt is read from.
	In io.Reader
	// Interrupts delivers SIGINT and SIGTERM.
	Interrupts <-chan os.Signal
	// Lines delivers what tasks write, to be shown; it is closed once that is all. nil:
	// nothing is shown.
	Lines <-chan string
	// LeaveOnInterrupt makes an interrupt stop following only: the job is left alone,
	// and the user is not asked.
	LeaveOnInterrupt bool
}

// question is asked at an interrupt in a terminal; a second interrupt kills the job, and
// one more leaves it once the kill is confirmed.
const question = "Kill the job (k, or Ctrl-C again), stop following and leave it running (l), or keep following (g)? "

// Follow shows a job until it ends, and returns its final state. It returns
// client.ErrJobFailed if the job did not succeed, which has been shown by then, and
// client.ErrInterrupted if the user has killed or left it.
func Follow(ctx context.Context, j *Job, o FollowOptions) (*proto.JobStatus, error) {
	f := &follower{job: j, o: o, progress: NewProgress(o.Out, o.Width), confirmed: make(chan struct{})}
	return f.run(ctx)
}

type follower struct {
	job      *Job
	o        FollowOptions
	progress *Progress

	asking  bool
	killing bool
	// confirmed is closed once the job that is being killed is known to end. leaving receives
	// when that is waited for no longer, after one more interrupt; nil before.
	confirmed chan struct{}
	leaving   <-chan time.Time
	answers   chan string
}

// confirmLimit is how long an interrupt, which follows one that kills the job, waits for that to
// be accepted. Where the application master answers it takes milliseconds.
const confirmLimit = 5 * time.Second

type watchResult struct {
	status *proto.JobStatus
	err    error
}

func (f *follower) run(ctx context.Context) (*proto.JobStatus, error) {
	killing, abandon := context.WithCancel(context.WithoutCancel(ctx)) // what has been begun is not left half done
	ctx, cancel := context.WithCancel(ctx)
	states := make(chan *proto.JobStatus)
	end := make(chan watchResult, 1)
	killed := make(chan error, 1)
	running := 1
	defer func() {
		cancel()
		abandon()
		for range running { // Watch and Kill end with ctx
			select {
			case <-end:
			case <-killed:
			}
		}
	}()
	go func() {
		s, err := f.job.Watch(ctx, func(s *proto.JobStatus) {
			select {
			case states <- s:
			case <-ctx.Done():
			}
		})
		end <- watchResult{s, err}
	}()
	kill := func() {
		if f.killing {
			return
		}
		f.killing, f.asking = true, false
		f.progress.Line("killing %s", f.job.ID)
		running++
		go func() {
			_, _, err := f.job.kill(killing, "killed by its user", func() { close(f.confirmed) })
			killed <- err
		}()
	}
	var latest *proto.JobStatus
	tick := time.NewTicker(time.Second) // the live line's clock
	defer tick.Stop()
	for {
		lines := f.o.Lines
		if f.asking {
			lines = nil // they would hide the question
		}
		select {
		case line, open := <-lines:
			if !open {
				f.o.Lines = nil
				break
			}
			f.progress.Line("%s", line)
			if latest != nil {
				f.progress.Show(latest)
			}
		case s := <-states:
			latest = s
			if !f.asking {
				f.progress.Show(s)
			}
		case <-tick.C:
			if latest != nil && f.o.Width > 0 && !f.asking && !latest.State.Done() {
				f.progress.Show(latest)
			}
		case w := <-end:
			running--
			f.progress.Clear()
			f.drain()
			if w.err != nil {
				if ctx.Err() != nil {
					return latest, client.ErrInterrupted
				}
				return latest, w.err
			}
			return w.status, f.finish(w.status)
		case err := <-killed:
			running--
			if err != nil && ctx.Err() == nil {
				return latest, err
			}
		case <-f.awaited():
			return latest, f.leave()
		case <-f.leaving:
			return latest, f.leave()
		case sig := <-f.o.Interrupts:
			switch {
			case f.o.LeaveOnInterrupt:
				f.progress.Clear()
				return latest, client.ErrInterrupted
			case f.leaving != nil:
				return latest, f.leave()
			case f.killing:
				f.leaving = time.After(confirmLimit)
			case f.o.Width > 0 && sig == os.Interrupt && !f.asking:
				f.ask()
			default:
				kill()
			}
		case a := <-f.answers:
			if !f.asking {
				break
			}
			switch a {
			case "k", "kill":
				kill()
			case "l", "leave":
				f.progress.Line("%s goes on. See: yarn-submit status %s, yarn-submit logs %s --follow, yarn-submit kill %s", f.job.ID, f.job.ID, f.job.ID, f.job.ID)
				return latest, client.ErrInterrupted
			case "g", "go", "":
				f.asking = false
			default:
				fmt.Fprintf(f.o.Out, "%.20q is none of k, l and g.\n%s", a, question)
				f.listen()
			}
		}
	}
}

// awaited returns what is waited for to leave a job that is being killed; nil, and so never, if
// nobody wants to leave it.
func (f *follower) awaited() <-chan struct{} {
	if f.leaving == nil {
		return nil
	}
	return f.confirmed
}

// leave says what becomes of a job that is being killed, and is not waited for.
func (f *follower) leave() error {
	select {
	case <-f.confirmed:
		f.progress.Line("%s is being killed, and may still end: see yarn-submit status %s", f.job.ID, f.job.ID)
	default:
		f.progress.Line("the kill was not confirmed; the job may still run: yarn-submit kill %s", f.job.ID)
	}
	return client.ErrInterrupted
}

// drainLimit bounds how long the last lines of a job that has ended are waited for.
const drainLimit = 10 * time.Second

// drain shows the last lines of a job that has ended.
func (f *follower) drain() {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	for f.o.Lines != nil {
		select {
		case line, open := <-f.o.Lines:
			if !open {
				return
			}
			f.progress.Line("%s", line)
		case <-limit.C:
			return
		}
	}
}

// ask asks what to do about an interrupt, while the job continues.
func (f *follower) ask() {
	f.asking = true
	f.progress.Clear()
	fmt.Fprint(f.o.Out, "\n"+question)
	f.listen()
}

// listen reads one answer. A read from a terminal cannot be cancelled: the goroutine
// stays until there is a line or the process ends.
func (f *follower) listen() {
	answers := make(chan string, 1)
	f.answers = answers
	go func() {
		line, err := bufio.NewReader(f.o.In).ReadString('\n')
		if err != nil && line == "" {
			return // no one there to answer: a second interrupt decides
		}
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
}

// finish shows how the job ended.
func (f *follower) finish(s *proto.JobStatus) error {
	if f.asking {
		fmt.Fprintln(f.o.Out)
		f.progress.Show(s)
	}
	if s.State == proto.JobState_JOB_STATE_SUCCEEDED {
		said := s.Id + " succeeded"
		if took := elapsed(s); took != "" {
			said += " in " + took
		}
		f.progress.Line("%s", said)
		if f.o.Lines == nil {
			f.progress.Line("its output: yarn-submit logs %s", s.Id)
		}
		return nil
	}
	if err := WriteFailure(f.o.Out, s); err != nil {
		return err
	}
	if f.killing {
		return client.ErrInterrupted
	}
	return client.ErrJobFailed
}

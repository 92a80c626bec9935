package container

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/proto"
)

// linger is where processes of an attempt say that they have done their work, and stay
// until they are let end (proto.EnvLinger). A nil one is of processes that never do.
type linger struct {
	name string // of the FIFO
	fifo *os.File
	log  *logrus.Entry

	mu    sync.Mutex
	peers bool  // a process has said that it needs those of other tasks
	stay  []int // the processes that have said so, by their own numbers
	ended bool  // all may end, also those that have not said so yet
}

// lingerEnv has processes say whether they linger, if their environment asks for that.
func (a *attempt) lingerEnv(env map[string]string, name string) error {
	if env[proto.EnvLinger] != "1" {
		return nil
	}
	if a.linger == nil {
		os.Remove(name) // of an attempt that could not be started
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			return fmt.Errorf("making the FIFO %s: %w", name, err)
		}
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NONBLOCK, 0) // for both, so that it has no end
		if err != nil {
			return fmt.Errorf("opening a FIFO: %w", err)
		}
		a.linger = &linger{name: name, fifo: f, log: a.log}
	}
	env[proto.EnvLinger] = a.linger.name
	return nil
}

// watch calls said each time that a process has said something, until close.
func (l *linger) watch(said func()) {
	lines := bufio.NewScanner(l.fifo)
	for lines.Scan() {
		if lines.Text() == proto.LingerPeers {
			l.mu.Lock()
			l.peers = true
			l.mu.Unlock()
			said()
			continue
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil || pid <= 0 {
			continue // it is not from the shim
		}
		l.mu.Lock()
		l.stay = append(l.stay, pid)
		ended := l.ended
		l.mu.Unlock()
		if ended {
			l.end()
			continue
		}
		said()
	}
}

// end lets all processes end that linger, and those that will.
func (l *linger) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, pid := range l.stay {
		name := fmt.Sprintf("%s.%d", l.name, pid)
		f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_ = f.SetWriteDeadline(time.Now().Add(time.Second))
			_, err = f.WriteString("\n")
			f.Close()
		}
		if err != nil { // most likely it has ended
			l.log.WithError(err).Warnf("letting the lingering process %d end", pid)
		}
		os.Remove(name)
	}
	l.stay = nil
}

// close ends watch. The attempt has ended.
func (l *linger) close() {
	if l == nil {
		return
	}
	l.fifo.Close()
	os.Remove(l.name)
}

// watchLingering has the loop tell the AM what processes of an attempt say.
func (a *agent) watchLingering(at *attempt) {
	if at.linger == nil {
		return
	}
	a.wg.Go(func() {
		at.linger.watch(func() {
			select {
			case a.lingers <- struct{}{}:
			default: // it will look at all
			}
		})
	})
}

// said tells the AM what processes of the running attempt have said.
func (a *agent) said() {
	if a.attempt == nil {
		return
	}
	peers, lingers := a.attempt.linger.state()
	if peers {
		a.send(&proto.FromAgent{Message: &proto.FromAgent_NeedsPeers{NeedsPeers: &proto.NeedsPeers{}}})
	}
	if lingers {
		a.sendLingers()
	}
}

// sendLingers tells the AM that a process of the running attempt lingers.
func (a *agent) sendLingers() {
	a.send(&proto.FromAgent{Message: &proto.FromAgent_Lingers{Lingers: &proto.Lingers{Attempt: a.attempt.number}}})
}

// state reports whether a process needs those of other tasks, and whether one lingers that
// was not let end.
func (l *linger) state() (peers, lingers bool) {
	if l == nil {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peers, len(l.stay) > 0
}

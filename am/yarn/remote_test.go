package yarn_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/yarn"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// The tests' AM is this test binary, run by YARN in the AM's container. It
// connects to the test and does as it is told, so that a test can use a driver
// that YARN knows as an application master.

const (
	envControl = "HOLDFAST_TEST_CONTROL" // where the test listens
	envCommand = "HOLDFAST_TEST_COMMAND" // what agents' containers run
	envLiteral = "HOLDFAST_TEST_LITERAL" // echoed to the test
	envSpec    = "HOLDFAST_TEST_SPEC"    // the job's, as JSON; none if it is not set
	envLossy   = "HOLDFAST_TEST_LOSSY"   // every other answer to a registration is lost
)

// request is what the test tells the AM to do; one field is set.
type request struct {
	Ask      *action.Ask
	Withdraw string
	Launch   string
	Release  string
	Finish   *action.Finish
}

// report is what the AM tells the test.
type report struct {
	Hello      bool
	Pid        int
	Found      *event.ContainerFound
	Localizing *event.Localizing
	Literal    string
	Fault      string // New or Finish failed
	Finished   bool
	Allocated  *event.Allocated
	Ended      *event.ContainerEnded
	Failed     string // container of LaunchFailed
	Waiting    *event.Waiting
	Noted      string
	Broken     string
}

func runMaster() error {
	c, err := net.Dial("tcp", os.Getenv(envControl))
	if err != nil {
		return err
	}
	defer c.Close()
	out, in := gob.NewEncoder(c), gob.NewDecoder(c)
	d, err := newDriver()
	if err != nil {
		return errors.Join(err, out.Encode(report{Fault: err.Error()}))
	}
	if err := out.Encode(report{Hello: true, Pid: os.Getpid(), Literal: os.Getenv(envLiteral)}); err != nil {
		return err
	}
	finished, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		events := d.Events().Chan(finished)
		for {
			var h report
			select {
			case err := <-d.Superseded():
				h.Broken = err.Error()
			case e, ok := <-events:
				if !ok {
					return
				}
				switch e := e.(type) {
				case event.Allocated:
					h.Allocated = &e
				case event.ContainerFound:
					h.Found = &e
				case event.Localizing:
					h.Localizing = &e
				case event.ContainerEnded:
					h.Ended = &e
				case event.LaunchFailed:
					h.Failed, h.Fault = e.Container, e.Why
				case event.Waiting:
					h.Waiting = &e
				case event.Noted:
					h.Noted = e.Text
				case event.Broken:
					h.Broken = e.Why
				}
			}
			if out.Encode(h) != nil {
				return
			}
		}
	}()
	for {
		var o request
		if err := in.Decode(&o); err != nil {
			o.Finish = &action.Finish{State: proto.JobState_JOB_STATE_FAILED, Why: "the test is gone"}
		}
		switch {
		case o.Ask != nil:
			d.Ask(*o.Ask)
		case o.Withdraw != "":
			d.Withdraw(o.Withdraw)
		case o.Launch != "":
			d.Launch(o.Launch)
		case o.Release != "":
			d.Release(o.Release)
		case o.Finish != nil:
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := d.Finish(ctx, *o.Finish)
			close(finished)
			<-told
			h := report{Finished: true}
			if err != nil {
				h.Fault = err.Error()
			}
			return errors.Join(err, out.Encode(h))
		}
	}
}

func newDriver() (*yarn.Driver, error) {
	creds, err := token.FromEnvironment()
	if err != nil {
		return nil, err
	}
	cf, err := conf.Unpack(creds.Secrets[proto.SecretConf])
	if err != nil {
		return nil, err
	}
	if os.Getenv(envLossy) != "" {
		rms, err := cf.ResourceManagers()
		if err != nil {
			return nil, err
		}
		address, err := lossy(rms.Scheduler[0], "registerApplicationMaster")
		if err != nil {
			return nil, err
		}
		cf.Set("yarn.resourcemanager.scheduler.address", address)
	}
	var spec *proto.JobSpec
	if text := os.Getenv(envSpec); text != "" {
		spec = &proto.JobSpec{}
		if err := protojson.Unmarshal([]byte(text), spec); err != nil {
			return nil, err
		}
	}
	own, err := hadoop.ParseContainerID(os.Getenv("CONTAINER_ID"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host := os.Getenv("NM_HOST")
	return yarn.New(ctx, yarn.Config{
		Conf: cf, Spec: spec, Credentials: creds, Job: os.Getenv(proto.EnvJob), Attempt: int(own.Attempt.Number), JobDirectory: os.Getenv(proto.EnvJobDirectory),
		Master: "127.0.0.1:1", Host: host, Port: 4711, TrackingURL: "http://" + host + ":4712/",
		Log: logrus.NewEntry(logrus.StandardLogger()), Command: os.Getenv(envCommand),
		AgentKeys: func(container string) ([]byte, error) { return []byte(container), nil },
	})
}

// lossy passes connections on to a server for as long as this process lives. Every
// other connection on which a method is called, the first one included, breaks when
// the server answers that.
func lossy(to, method string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var calls atomic.Int32
	serve := func(near net.Conn) {
		defer near.Close()
		far, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer far.Close()
		var lose atomic.Bool
		go func() {
			defer far.Close()
			b := make([]byte, 64<<10) // a call of these tests comes in one piece
			for {
				n, err := near.Read(b)
				if n > 0 && bytes.Contains(b[:n], []byte(method)) && calls.Add(1)%2 == 1 {
					lose.Store(true)
				}
				if _, werr := far.Write(b[:n]); err != nil || werr != nil {
					return
				}
			}
		}()
		b := make([]byte, 64<<10)
		for {
			n, err := far.Read(b)
			if err != nil || lose.Load() {
				return
			}
			if _, err := near.Write(b[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String(), nil
}

// master is the test's end of the connection.
type master struct {
	t       *testing.T
	conn    net.Conn
	out     *gob.Encoder
	in      chan report
	literal string
	process int // of the AM
	// what happened, as far as it was read
	waiting string
}

func (m *master) tell(o request) {
	m.t.Helper()
	if err := m.out.Encode(o); err != nil {
		m.t.Fatalf("the AM cannot be told anything: %v", err)
	}
}

func (m *master) ask(role string, n int, mb int64) {
	for i := range n {
		m.tell(request{Ask: &action.Ask{Request: fmt.Sprintf("%s-%d", role, i), Role: role, MemoryMB: mb, VCores: 1}})
	}
}

// await returns the first report for which ok holds, within a generous time.
func (m *master) await(what string, ok func(report) bool) report {
	m.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case h, open := <-m.in:
			if !open {
				m.t.Fatalf("the AM is gone while waiting for %s", what)
			}
			if h.Waiting != nil {
				m.waiting = h.Waiting.Why
			}
			if ok(h) {
				return h
			}
			if h.Broken != "" || (h.Fault != "" && h.Failed == "") {
				m.t.Fatalf("waiting for %s: the AM says %s%s", what, h.Broken, h.Fault)
			}
			if h.Waiting == nil {
				m.t.Logf("while waiting for %s: %s", what, describe(h))
			}
		case <-deadline:
			m.t.Fatalf("%s did not happen", what)
		}
	}
}

func describe(h report) string {
	switch {
	case h.Allocated != nil:
		return fmt.Sprintf("%+v", *h.Allocated)
	case h.Ended != nil:
		return fmt.Sprintf("%+v", *h.Ended)
	}
	return fmt.Sprintf("%+v", h)
}

func (m *master) allocated(n int) []event.Allocated {
	m.t.Helper()
	var list []event.Allocated
	for len(list) < n {
		h := m.await("a container", func(h report) bool { return h.Allocated != nil })
		list = append(list, *h.Allocated)
	}
	return list
}

func (m *master) ended(container string) event.ContainerEnded {
	m.t.Helper()
	return *m.await("the end of "+container, func(h report) bool { return h.Ended != nil && h.Ended.Container == container }).Ended
}

func (m *master) finish(o action.Finish) {
	m.t.Helper()
	m.tell(request{Finish: &o})
	if h := m.await("the AM's end", func(h report) bool { return h.Finished }); h.Fault != "" {
		m.t.Errorf("Finish: %s", h.Fault)
	}
}

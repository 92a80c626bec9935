package container_test

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"holdfast/container"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// kept is a log that can be looked at while it is written.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(b)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// TestAnAgentObeysItsOwnMasterOnly: whoever else answers where the job's directory
// leads hears nothing, not even the agent's name; the task runs on, and the log
// says why.
func TestAnAgentObeysItsOwnMasterOnly(t *testing.T) {
	m := newMaster(t)
	log := &kept{}
	m.startAgent("c1", func(c *container.Config) {
		l := logrus.New()
		l.SetOutput(log)
		c.Log = logrus.NewEntry(l)
	})
	c := m.agent()
	c.send(leased(longLease))
	c.prepared()
	c.send(&proto.Start{Attempt: 2, Command: shell(`sleep 1000`)})
	pid := c.started().Pid
	other, err := jobtls.New("another job")
	if err != nil {
		t.Fatal(err)
	}
	tls := func(k jobtls.Keys) credentials.TransportCredentials {
		c, err := k.Server()
		if err != nil {
			t.Fatal(err)
		}
		return credentials.NewTLS(c)
	}
	m.server.Stop()
	for _, x := range []struct {
		name string
		with credentials.TransportCredentials
	}{
		{"another job's master", tls(other.Master)},
		{"another job's master that has this job's authority", tls(jobtls.Keys{CA: m.keys.Master.CA, Cert: other.Master.Cert, Key: other.Master.Key})},
		{"an agent of this job", tls(m.keys.Agent)},
		{"a client of this job", tls(m.keys.Client)},
		{"a server without TLS", insecure.NewCredentials()},
	} {
		impostor := m.announced(x.with)
		eventually(t, "a word on "+x.name, func() bool {
			return strings.Contains(log.String(), impostor.address+" is not this job's application master")
		})
		impostor.server.Stop() // what it has been told is known then
		if len(impostor.agents) > 0 {
			t.Errorf("the agent came to %s: %v", x.name, (<-impostor.agents).hello)
		}
		if !alive(int(pid)) {
			t.Fatalf("%s has ended the task", x.name)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // as a master that is ending
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m.leadTo(l.Addr().String())
	for range 2 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if strings.Contains(log.String(), l.Addr().String()+" is not this job's application master") {
		t.Errorf("who hangs up is taken for a stranger:\n%s", log.String())
	}
	if h := m.successor().agent().hello; h.Attempt != 2 || h.TaskPid != pid {
		t.Errorf("it comes to the job's next master with %v", h)
	}
}

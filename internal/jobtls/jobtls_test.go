package jobtls_test

import (
	"crypto/tls"
	"net"
	"testing"

	"holdfast/internal/jobtls"
)

// shake connects two configurations and tells who the server saw.
func shake(t *testing.T, server, client *tls.Config) (jobtls.Party, error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	type result struct {
		party jobtls.Party
		err   error
	}
	done := make(chan result, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- result{err: err}
			return
		}
		defer c.Close()
		tc := c.(*tls.Conn)
		if err := tc.Handshake(); err != nil {
			done <- result{err: err}
			return
		}
		p, err := jobtls.Peer(tc.ConnectionState())
		done <- result{p, err}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	clientErr := tls.Client(c, client).Handshake()
	r := <-done
	if r.err != nil {
		return "", r.err
	}
	return r.party, clientErr
}

func TestParties(t *testing.T) {
	set, err := jobtls.New("j")
	if err != nil {
		t.Fatal(err)
	}
	other, err := jobtls.New("k")
	if err != nil {
		t.Fatal(err)
	}
	carried, err := jobtls.Unmarshal(set.Agent.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	server, err := set.Master.Server()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		keys jobtls.Keys
		want jobtls.Party // empty: refused
	}{
		{"agent", carried, jobtls.Agent},
		{"client", set.Client, jobtls.Client},
		{"another job's agent", other.Agent, ""},
		{"another job's certificate under this job's authority", jobtls.Keys{CA: set.Agent.CA, Cert: other.Agent.Cert, Key: other.Agent.Key}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dialer, err := c.keys.Dialer()
			if err != nil {
				t.Fatal(err)
			}
			got, err := shake(t, server, dialer)
			if c.want == "" {
				if err == nil {
					t.Fatalf("was let in as %q", got)
				}
				return
			}
			if err != nil || got != c.want {
				t.Fatalf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestAnAgentCannotServe(t *testing.T) {
	set, err := jobtls.New("j")
	if err != nil {
		t.Fatal(err)
	}
	server, err := set.Agent.Server()
	if err != nil {
		t.Fatal(err)
	}
	dialer, err := set.Client.Dialer()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shake(t, server, dialer); err == nil {
		t.Fatal("a client took an agent for the master")
	}
}

func TestUnmarshalRefusesHalfASet(t *testing.T) {
	for _, b := range []string{"", "{}", `{"ca":"eA==","cert":"eA=="}`} {
		if _, err := jobtls.Unmarshal([]byte(b)); err == nil {
			t.Errorf("took %q for keys", b)
		}
	}
}

func TestPassesAreOfOneContainerAndJob(t *testing.T) {
	set, err := jobtls.New("j")
	if err != nil {
		t.Fatal(err)
	}
	other, err := jobtls.New("k")
	if err != nil {
		t.Fatal(err)
	}
	own, err := set.Master.Admit(set.Agent, "c1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := jobtls.Unmarshal(set.Master.Marshal()) // another attempt of the master
	if err != nil {
		t.Fatal(err)
	}
	if !again.Admits("c1", own.Pass) {
		t.Error("another master of the job does not admit the agent")
	}
	if again.Admits("c2", own.Pass) || other.Master.Admits("c1", own.Pass) || set.Agent.Admits("c1", own.Pass) || again.Admits("c1", nil) {
		t.Error("the pass is good elsewhere too")
	}
}

package peers

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/test/bound"
)

// testPeers are ps-0 to ps-10; two of them are somewhere.
func testPeers(t testing.TB) *Peers {
	t.Helper()
	p, err := New(&proto.Assign{
		Task: "ps-0", Spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "ps", Count: 11}}},
	})
	if err == nil {
		err = proto.NewRoutes([]int{1, 10}, []proto.TaskAddress{
			{Port: 4000, Host: "10.0.0.1", RealPort: 4001}, {Port: 4000, Host: "10.0.0.2", RealPort: 4000},
		}, nil).Apply(p.addresses)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHostsFile(t *testing.T) {
	n := &Names{peers: testPeers(t), host: "127.0.0.1 localhost # here\n\n# nothing\n10.0.0.9 ps-1 other.example\n10.0.0.8 ps-10\n::1 ip6-localhost"}
	got := n.content(n.addresses())
	want := "127.77.0.10 ps-9\n127.77.0.11 ps-10\n127.0.0.1 localhost\n10.0.0.9 other.example\n::1 ip6-localhost\n"
	if !strings.HasPrefix(got, "127.77.0.1 ps-0\n127.77.0.2 ps-1\n") || !strings.HasSuffix(got, want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestTheNodesOwnName: what listens on the address of the host's name can be reached by
// peers.
func TestTheNodesOwnName(t *testing.T) {
	node := nodeName{names: []string{"n7", "n7.example"}, address: "10.0.0.7"}
	for _, c := range []struct {
		name, host, want string
		wrong            bool
	}{
		{"Debian's", "127.0.0.1 localhost\n127.0.1.1 n7.example n7\n", "127.0.0.1 localhost\n10.0.0.7 n7.example n7\n", true},
		{"with localhost", "127.0.0.1 localhost localhost.localdomain n7\n", "10.0.0.7 n7\n127.0.0.1 localhost localhost.localdomain\n", true},
		{"right", "127.0.0.1 localhost\n10.0.0.7 n7\n127.0.1.1 n8\n", "127.0.0.1 localhost\n10.0.0.7 n7\n127.0.1.1 n8\n", false},
		{"missing", "127.0.0.1 localhost\n", "127.0.0.1 localhost\n10.0.0.7 n7 n7.example\n", true},
	} {
		n := &Names{peers: testPeers(t), host: c.host, node: node}
		got := n.content(nil)
		if c.name != "missing" && node.mapsToLoopback(c.host) != c.wrong {
			t.Errorf("%s: leads to loopback: %v", c.name, !c.wrong)
		}
		if got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "localhost", "localhost.localdomain"} {
		if n := newNodeName(host, "127.0.0.1:1"); n.address != "" {
			t.Errorf("a job on one machine, %s, has the address %s", host, n.address)
		}
	}
	if n := newNodeName("10.9.8.7", "127.0.0.1:1"); n.address != "10.9.8.7" || len(n.names) != 1 {
		t.Errorf("%+v", n)
	}
	if got := networkInterface("127.0.0.1"); got != "lo" {
		t.Errorf("127.0.0.1 is on %q", got)
	}
}

func FuzzHostsFile(f *testing.F) {
	f.Add("127.0.0.1 localhost\n10.0.0.9 ps-1 x\n")
	f.Fuzz(func(t *testing.T, host string) {
		defer bound.Memory(t, len(host), 64)()
		n := &Names{peers: testPeers(t), host: host, node: nodeName{names: []string{"n7"}, address: "10.0.0.7"}}
		found := map[string]string{}
		for line := range strings.Lines(n.content(n.addresses())) {
			f := strings.Fields(line)
			for _, name := range f[1:] {
				if _, twice := found[name]; !twice {
					found[name] = f[0]
				}
			}
		}
		if found["ps-1"] != "127.77.0.2" || found["ps-10"] != "127.77.0.11" {
			t.Fatalf("the peers are at %v", found)
		}
	})
}

func TestSubstitute(t *testing.T) {
	start := &proto.Start{
		Command: []string{"x", "--ps=ps-1:4000,ps-10:4000", "not-ps-1:4000 xps-1:4000 ps-1", "ps-1:5000"},
		Env:     map[string]string{"TF_CONFIG": `{"ps":["ps-1:4000","ps-10:4000"]}`, "MASTER_ADDR": "ps-1", "OTHER": "ps-1"},
	}
	for _, c := range []struct {
		name    string
		names   Names
		command []string
		env     map[string]string
	}{
		{"own hosts file", Names{file: "hosts"}, start.Command, start.Env},
		{
			"none", Names{},
			[]string{"x", "--ps=127.77.0.2:4000,127.77.0.11:4000", "not-ps-1:4000 xps-1:4000 ps-1", "127.77.0.2:5000"},
			map[string]string{"TF_CONFIG": `{"ps":["127.77.0.2:4000","127.77.0.11:4000"]}`, "MASTER_ADDR": "127.77.0.2", "OTHER": "ps-1"},
		},
	} {
		c.names.peers = testPeers(t)
		command, env := c.names.Substitute(start.Command, start.Env)
		if !slices.Equal(command, c.command) || !maps.Equal(env, c.env) {
			t.Errorf("%s: %q, %q", c.name, command, env)
		}
	}
}

func TestFilesFirst(t *testing.T) {
	for in, want := range map[string]string{
		"passwd: files\nhosts:  files dns\n":                               "passwd: files\nhosts:  files dns\n",
		"hosts: mymachines resolve [!UNAVAIL=return] files dns\npasswd: x": "hosts: files mymachines resolve [!UNAVAIL=return] files dns\npasswd: x",
		"#hosts: dns\n": "#hosts: dns\n",
		"":              "",
	} {
		if got := filesFirst(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

package peers

import (
	"net/netip"
	"slices"
	"testing"

	"holdfast/container/steer"
	"holdfast/proto"
	"holdfast/runtime/framework"
)

// What the master says of a task has placeholders; where the tasks are comes in
// whole and in parts.
func TestCommandsAreMadeOfWhereThePeersAre(t *testing.T) {
	assign := &proto.Assign{
		Job: "job-1", Task: "worker-0",
		Spec:   &proto.JobSpec{Framework: "tensorflow", Roles: []*proto.RoleSpec{{Name: "ps", Count: 2}, {Name: "worker", Count: 1}}},
		Routes: proto.NewRoutes(nil, []proto.TaskAddress{{Port: 20000, Host: "n1", RealPort: 20000}, {Port: 20001, Host: "n2", RealPort: 20001}, {Port: 20000}}, nil),
	}
	p, err := New(assign)
	if err != nil {
		t.Fatal(err)
	}
	back := proto.NewRoutes([]int{0}, []proto.TaskAddress{{Port: 20000, Host: "n3", RealPort: 20009}}, []int{0})
	if cut, err := p.Take(back); err != nil || !slices.Equal(p.Called(cut), []string{"ps-0"}) {
		t.Fatalf("connections to %v are cut, %v", p.Called(cut), err)
	}
	argv, env, err := p.Command([]string{"train", "--ps={ps_hosts}", "--me={task}:{port}"}, map[string]string{"INDEX": "{index}"}, 20007, framework.Attempt{Number: 3})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"train", "--ps=ps-0:20000,ps-1:20001", "--me=worker-0:20007"}; !slices.Equal(argv, want) {
		t.Errorf("command %q, want %q", argv, want)
	}
	for name, want := range map[string]string{
		"INDEX": "0", "HOLDFAST_JOB": "job-1", "HOLDFAST_ATTEMPT": "3", "HOLDFAST_PS_HOSTS": "ps-0:20000,ps-1:20001",
		"TF_CONFIG": `{"cluster":{"ps":["ps-0:20000","ps-1:20001"],"worker":["worker-0:20007"]},"task":{"type":"worker","index":0}}`,
	} {
		if env[name] != want {
			t.Errorf("%s=%s, want %s", name, env[name], want)
		}
	}
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	if want := []steer.Route{
		{Virtual: at("127.77.0.1:20000"), Host: "n3", Port: 20009}, {Virtual: at("127.77.0.2:20001"), Host: "n2", Port: 20001},
	}; !slices.Equal(p.Table(), want) {
		t.Errorf("routes %v, want %v", p.Table(), want)
	}
}

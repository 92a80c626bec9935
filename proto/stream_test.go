package proto

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// TestMakeText: in whichever field of a message there is a string that is not UTF-8, it can be
// encoded then, and what is UTF-8 stays as it is.
func TestMakeText(t *testing.T) {
	const bad, good = "r\xe9sum\xe9", "r\ufffdsum\ufffd"
	name := []byte(bad)
	for _, m := range []*FromAgent{
		{Message: &FromAgent_Hello{Hello: &Hello{Host: bad, Exited: &Exited{Error: bad, Tail: []string{"résumé", bad}}}}},
		{Message: &FromAgent_Heartbeat{Heartbeat: &Heartbeat{Line: bad, Scalars: []*Scalar{{Name: "loss", Value: 1}, {Name: bad}}}}},
		{Message: &FromAgent_ImportProfile{ImportProfile: &ImportProfile{SetEnv: map[string]string{"A": bad, bad: "b"}, SysPath: []string{bad}}}},
		{Message: &FromAgent_Committed{Committed: &Committed{Path: "./out", Files: []*CommittedFile{{Name: name}}}}},
	} {
		MakeText(m)
		b, err := proto.Marshal(m)
		again := &FromAgent{}
		if err == nil {
			err = proto.Unmarshal(b, again)
		}
		if err != nil {
			t.Errorf("%v: %v", m, err)
			continue
		}
		if e := again.GetHello().GetExited(); e != nil && (e.Error != good || e.Tail[0] != "résumé" || e.Tail[1] != good) {
			t.Errorf("its end is %v", e)
		}
		if p := again.GetImportProfile(); p != nil && (len(p.SetEnv) != 2 || p.SetEnv["A"] != good || p.SetEnv[good] != "b") {
			t.Errorf("the profile is %v", p)
		}
		if c := again.GetCommitted(); c != nil && string(c.Files[0].Name) != bad {
			t.Errorf("the name of a file is %q", c.Files[0].Name)
		}
	}
}

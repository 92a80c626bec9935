package runtime

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
)

// pretended is a framework as a new one would be written: this value in a file of its
// own, and a place in frameworks.All.
var pretended = framework.Framework{
	Name: "pretended", Title: "Pretended",
	Commands:  []string{"pretendrun"},
	Observers: map[string]time.Duration{"watcher": time.Minute},
	Rules: func(*proto.JobSpec, string) (proto.LossRule, proto.CompletionRule) {
		return proto.LossRule_LOSS_RULE_ALL, proto.CompletionRule_COMPLETION_RULE_REQUIRED
	},
	Options: []framework.Option{{
		Flag: "--pretend", For: "pretended scripts",
		Given: func(s *proto.JobSpec) bool { return s.Name == "pretend" },
	}},
	Env: func(m framework.Member) map[string]string {
		return map[string]string{"PRETENDED_RANK": strconv.Itoa(m.Rank)}
	},
	Failures:  framework.Failures{Lost: []string{"PretendedPeerError"}},
	Advice:    []framework.Advice{{Says: "pretended trouble", Do: "Pretend less."}},
	ErrorFile: &framework.ErrorFile{Variable: "PRETENDED_ERRORS"},
}

// TestOneFileAddsAFramework: what there is to know of one follows from its value.
func TestOneFileAddsAFramework(t *testing.T) {
	saved := frameworks.All
	frameworks.All = append([]*framework.Framework{&pretended}, saved...)
	defer func() { frameworks.All = saved }()

	job := &proto.JobSpec{Command: []string{"/opt/bin/pretendrun"}, Roles: []*proto.RoleSpec{{Name: "watcher", Count: 1}, {Name: "worker", Count: 2}}}
	if err := Complete(job); err != nil || job.Framework != "pretended" {
		t.Fatalf("the command implies %q, %v", job.Framework, err)
	}
	if r := job.Roles[0]; r.Completion != proto.CompletionRule_COMPLETION_RULE_OPTIONAL || UsualFinish("pretended", "watcher") != time.Minute {
		t.Errorf("the observer: %v", r)
	}
	if r := job.Roles[1]; r.Loss != proto.LossRule_LOSS_RULE_ALL {
		t.Errorf("the member: %v", r)
	}
	_, env, err := Command(job, framework.Attempt{Task: Tasks(job)[2], Ports: map[string]int{"watcher-0": 1, "worker-0": 2, "worker-1": 3}})
	if err != nil || env["PRETENDED_RANK"] != "1" {
		t.Errorf("environment %v, %v", env, err)
	}
	if f, _ := FrameworkErrorFile(env); f != pretended.ErrorFile {
		t.Errorf("the error file %v", f)
	}
	other := &proto.JobSpec{Name: "pretend", Framework: "none", Command: []string{"x"}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 1}}}
	if err := Complete(other); err == nil || !strings.Contains(err.Error(), "--pretend") {
		t.Errorf("its option with another framework: %v", err)
	}
	l := newFailurePatterns()
	if v := l.explain("pretended.PretendedPeerError: gone"); !v.PeerLost {
		t.Errorf("a lost peer: %+v", v)
	}
	if v := l.explain("pretended trouble"); v.Advice != "Pretend less." {
		t.Errorf("advice: %+v", v)
	}
}

package yarn

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	wire "holdfast/internal/hadoop/wire/yarn"
	"holdfast/test/bound"
)

// Bytes written by Hadoop 3.4.2's own classes (AllocateRequestPBImpl,
// AllocateResponsePBImpl, ContainerIdPBImpl).
const (
	javaContainer = "120d0a0908071080d095ffbc311002188c8080808060"
	javaAllocate  = "0a3e0a02080212012a1a2b08801010031a140a096d656d6f72792d6d621080101a024d6920001a0e0a0676636f72657310031a002000200428013a04080110001216120d0a0908071080d095ffbc311002188c80808080601a080a026e3112026e3220052d0000003f"
	javaAnswer    = "10061a80010a16120d0a0908071080d095ffbc311002188c808080806012070a026e3110e93e1a076e313a38303432222b08801010031a140a096d656d6f72792d6d621080101a024d6920001a0e0a0676636f72657310031a0020002a02080232210a026964120270771a0e436f6e7461696e6572546f6b656e22076e313a383034313801224c0a16120d0a0908071080d095ffbc311002188c808080806010031a23436f6e7461696e65722072656c6561736564206f6e2061202a6c6f73742a206e6f6465209cffffffffffffffff0130012a2b08802010041a140a096d656d6f72792d6d621080201a024d6920001a0e0a0676636f72657310041a00200038034a230a070a026e3110e93e12180a01691201701a074e4d546f6b656e22076e313a3830343162210a036e657712067365637265741a105941524e5f414d5f524d5f544f4b454e22006a020800"
	// A node that is decommissioned within two minutes, both contracts of a
	// preemption, and an opportunistic container that was changed.
	javaWarning = "10061a580a11120d0a0908071080d095ffbc311002180e12070a026e3110e93e1a076e313a38303432222b08801010011a140a096d656d6f72792d6d621080101a024d6920001a0e0a0676636f72657310011a0020002a0208023802327a0a070a026e3210e93e12076e323a383034321a022f722229080010001a130a096d656d6f72792d6d6210001a024d6920001a0e0a0676636f72657310001a0020002a2b08802010041a140a096d656d6f72792d6d621080201a024d6920001a0e0a0676636f72657310041a002000300138074200480068787002380342750a1a0a180a16120d0a0908071080d095ffbc311002188c808080806012570a400a3e0a02080012012a1a2b08800810011a140a096d656d6f72792d6d621080081a024d6920001a0e0a0676636f72657310011a002000200128013a040801100012130a11120d0a0908071080d095ffbc311002180d6a02080082015c080012580a11120d0a0908071080d095ffbc311002180e12070a026e3110e93e1a076e313a38303432222b08801010011a140a096d656d6f72792d6d621080101a024d6920001a0e0a0676636f72657310011a0020002a0208023802"
)

var javaID = ContainerID{AttemptID{ApplicationID{1700000000000, 7}, 2}, 3<<40 | 12}

func decode(t testing.TB, text string, m proto.Message) {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
}

// fake answers calls as a server would.
type fake struct {
	t       *testing.T
	methods []string
	answer  func(method string, req, resp proto.Message) error
}

func (f *fake) Call(_ context.Context, method string, req, resp proto.Message) error {
	f.methods = append(f.methods, method)
	b, err := proto.Marshal(req)
	if err != nil {
		f.t.Errorf("%s: what was sent lacks something: %v", method, err)
	}
	if err := proto.Unmarshal(b, req); err != nil {
		f.t.Error(err)
	}
	return f.answer(method, req, resp)
}

func TestContainerIDOnTheWire(t *testing.T) {
	var p wire.ContainerIdProto
	decode(t, javaContainer, &p)
	if got := containerID(&p); got != javaID {
		t.Errorf("Java's container id is read as %+v", got)
	}
}

func TestAllocateOnTheWire(t *testing.T) {
	var java, ours wire.AllocateRequestProto
	decode(t, javaAllocate, &java)
	var answer wire.AllocateResponseProto
	decode(t, javaAnswer, &answer)
	reconnected := 0
	f := &fake{t: t, answer: func(_ string, req, resp proto.Message) error {
		proto.Merge(&ours, req)
		proto.Merge(resp, &answer)
		return nil
	}}
	m := &Master{rpc: f, reconnect: func() { reconnected++ }, response: 5, amrm: token.Token{Identifier: []byte("old")}}
	a, err := m.Allocate(t.Context(), Heartbeat{
		Requests: []Request{{Priority: 2, Place: Anywhere, Resource: Resource{MemoryMB: 2048, VCores: 3}, Count: 4}},
		Release:  []ContainerID{javaID}, Avoid: []string{"n1"}, Allow: []string{"n2"}, Progress: 0.5,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Java also writes the resource as a map.
	java.GetAsk()[0].Capability.ResourceValueMap = nil
	java.Release[0].AppId, ours.Release[0].AppId = nil, nil
	if !proto.Equal(&java, &ours) {
		t.Errorf("sent\n%v\nwhere Java sends\n%v", &ours, &java)
	}

	want := &Answer{
		Allocated: []Container{{
			ID: javaID, Node: NodeID{"n1", 8041}, Resource: Resource{MemoryMB: 2048, VCores: 3}, Priority: 2, HTTP: "n1:8042",
			Token: token.Token{Identifier: []byte("id"), Password: []byte("pw"), Kind: "ContainerToken", Service: "n1:8041"},
		}},
		Completed: []Completed{{ID: javaID, Exit: -100, Diagnostics: "Container released on a *lost* node"}},
		Updated:   []Node{}, Headroom: Resource{MemoryMB: 4096, VCores: 4}, Nodes: 3,
		NMTokens: []NMToken{{NodeID{"n1", 8041}, token.Token{Identifier: []byte("i"), Password: []byte("p"), Kind: "NMToken", Service: "n1:8041"}}},
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("Java's answer is read as\n%+v, not as\n%+v", a, want)
	}
	if m.response != 6 {
		t.Errorf("the next heartbeat has response id %d", m.response)
	}
	if string(m.amrm.Identifier) != "new" || string(m.amrm.Password) != "secret" || reconnected != 1 {
		t.Errorf("the new AMRMToken was not taken over: %s, %d", m.amrm.Identifier, reconnected)
	}
	// A failed call changes nothing.
	f.answer = func(string, proto.Message, proto.Message) error { return errors.New("lost") }
	if _, err := m.Allocate(t.Context(), Heartbeat{}); err == nil || m.response != 6 {
		t.Errorf("after a failed call: %v, response id %d", err, m.response)
	}
}

func TestWarningsOnTheWire(t *testing.T) {
	var r wire.AllocateResponseProto
	decode(t, javaWarning, &r)
	a := answer(&r)
	id := func(n int64) []ContainerID { return []ContainerID{{javaID.Attempt, n}} }
	if want := (Preemption{Strict: []ContainerID{javaID}, Negotiable: id(13), Resources: Resource{MemoryMB: 1024, VCores: 1}}); !reflect.DeepEqual(a.Preempt, want) {
		t.Errorf("the scheduler wants %+v, and Java wrote %+v", a.Preempt, want)
	}
	if len(a.Updated) != 1 || !a.Updated[0].Leaving() || a.Updated[0].Running() || a.Updated[0].ID.Host != "n2" || a.Updated[0].Timeout != 2*time.Minute {
		t.Errorf("the node: %+v", a.Updated)
	}
	for _, list := range [][]Container{a.Allocated, a.Changed} {
		if len(list) != 1 || list[0].ID != id(14)[0] || !list[0].Opportunistic || list[0].Resource.MemoryMB != 2048 {
			t.Errorf("the container: %+v", list)
		}
	}
}

func TestFinishUntilNoted(t *testing.T) {
	n := 0
	f := &fake{t: t, answer: func(_ string, req, resp proto.Message) error {
		n++
		if got := req.(*wire.FinishApplicationMasterRequestProto).GetFinalApplicationStatus().String(); got != "APP_KILLED" {
			t.Errorf("final status %s", got)
		}
		resp.(*wire.FinishApplicationMasterResponseProto).IsUnregistered = proto.Bool(n == 3)
		return nil
	}}
	m := &Master{rpc: f}
	if err := m.Finish(t.Context(), FinalKilled, "why", "url"); err != nil || n != 3 {
		t.Errorf("%v after %d calls", err, n)
	}
	f.answer = func(string, proto.Message, proto.Message) error {
		return &rpc.RemoteError{Class: exceptions + "ApplicationAttemptNotFoundException"}
	}
	if err := m.Finish(t.Context(), FinalKilled, "why", "url"); !errors.Is(err, ErrGone) {
		t.Errorf("finishing what is gone: %v", err)
	}
}

func TestKillUntilDone(t *testing.T) {
	n := 0
	c := &Client{rpc: &fake{t: t, answer: func(_ string, req, resp proto.Message) error {
		n++
		if got := req.(*wire.KillApplicationRequestProto).GetDiagnostics(); got != "enough" {
			t.Errorf("diagnostics %q", got)
		}
		resp.(*wire.KillApplicationResponseProto).IsKillCompleted = proto.Bool(n == 2)
		return nil
	}}}
	if err := c.Kill(t.Context(), ApplicationID{1, 1}, "enough"); err != nil || n != 2 {
		t.Errorf("%v after %d calls", err, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	n = 10
	if err := c.Kill(ctx, ApplicationID{1, 1}, "enough"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a kill that is not done in time: %v", err)
	}
}

func TestStartReportsEachFailure(t *testing.T) {
	f := &wire.ContainerExceptionMapProto{
		ContainerId: javaID.proto(),
		Exception: &wire.SerializedExceptionProto{
			ClassName: proto.String("org.apache.hadoop.yarn.exceptions.YarnException"), Message: proto.String("Unauthorized request to start container. \nThis token is expired. current time is 1795773600000 found 1795773000000\nNote: System times on machines may be out of sync. Set system time or time zones."),
			Cause: &wire.SerializedExceptionProto{ClassName: proto.String("java.io.IOException"), Message: proto.String("token expired")},
		},
	}
	err := failures("start", NodeID{"n1", 8041}, []*wire.ContainerExceptionMapProto{f})[javaID]
	want := fmt.Sprintf("start %s at the NodeManager n1:8041: YarnException: Unauthorized request to start container; This token is expired. current time is 1795773600000 found 1795773000000; Note: System times on machines may be out of sync. Set system time or time zones: IOException: token expired", javaID)
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestAStartThatIsRepeatedIsNoFailure: the answer to the first call was lost.
func TestAStartThatIsRepeatedIsNoFailure(t *testing.T) {
	refused := func(text string) *wire.ContainerExceptionMapProto {
		return &wire.ContainerExceptionMapProto{ContainerId: javaID.proto(), Exception: &wire.SerializedExceptionProto{
			ClassName: proto.String("org.apache.hadoop.yarn.exceptions.YarnException"), Message: proto.String(text),
		}}
	}
	node := NodeID{"n1", 8041}
	for _, text := range []string{
		"Unauthorized request to start container. \nAttempt to relaunch the same container with id " + javaID.String() + ".",
		"Container " + javaID.String() + " already is running on this node!!",
	} {
		if m := startFailures(node, []*wire.ContainerExceptionMapProto{refused(text)}); len(m) != 0 {
			t.Errorf("what was started already is said to have failed: %v", m)
		}
	}
	if m := startFailures(node, []*wire.ContainerExceptionMapProto{refused("\nContainer " + javaID.String() + " rejected as it is allocated by a previous RM")}); m[javaID] == nil {
		t.Error("a refusal is not told")
	}
}

func TestGPUsAreAResourceOfTheirOwn(t *testing.T) {
	r := Resource{MemoryMB: 1024, VCores: 1, GPUs: 2}
	if got := resource(r.proto()); !got.Equal(r) {
		t.Errorf("%v comes back as %v", r, got)
	}
	if r.GPUs = 0; len(r.proto().GetResourceValueMap()) != 0 {
		t.Error("a cluster without GPUs would refuse an ask that names them")
	}
}

func TestMasterNeedsItsToken(t *testing.T) {
	if _, err := NewMaster(conf.New(nil), token.New(), rpc.Retry{}); err == nil {
		t.Error("an AM without an AMRMToken cannot log in")
	}
	if _, err := NewClient(conf.New(map[string]string{"hadoop.security.authentication": "kerberos"}), Options{}); err == nil {
		t.Error("a client without a token cannot log in to a cluster with Kerberos")
	}
}

func FuzzAnswer(f *testing.F) {
	b, _ := hex.DecodeString(javaAnswer)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		var r wire.AllocateResponseProto
		if proto.Unmarshal(b, &r) == nil {
			answer(&r)
		}
		var q wire.GetApplicationReportResponseProto
		if proto.Unmarshal(b, &q) == nil {
			_ = Waiting(report(q.GetApplicationReport()), 0)
		}
		var u wire.GetQueueInfoResponseProto
		if proto.Unmarshal(b, &u) == nil {
			queue(u.GetQueueInfo()).Leaves()
		}
	})
}

// The answer to a registration may be lost, and its repetition is refused then. The
// RM counts heartbeats from 0 all the same.
func TestRegistrationWhoseAnswerWasLost(t *testing.T) {
	f := &fake{t: t, answer: func(string, proto.Message, proto.Message) error {
		return fmt.Errorf("registerApplicationMaster: %w", &rpc.RemoteError{
			Class:   "org.apache.hadoop.yarn.exceptions.InvalidApplicationMasterRequestException",
			Message: "Application Master is already registered : application_1_0001",
		})
	}}
	m := &Master{rpc: f, response: 37}
	got, err := m.Register(t.Context(), Registration{Host: "n1"})
	if err != nil || !got.Lost || m.response != 0 {
		t.Errorf("%+v, %v; the next heartbeat has response id %d", got, err, m.response)
	}
}

// Whoever sits between master and cluster cannot talk them out of what the
// configuration demands.
func TestLoginsOfMastersDemandTheProtection(t *testing.T) {
	const challenge = `realm="default",nonce="abc",algorithm=md5-sess,charset=utf-8,cipher="3des,rc4",qop=`
	for _, tt := range []struct{ demanded, offered, chosen string }{
		{"authentication", "auth", "qop=auth,"},
		{"privacy", "auth", ""},
		{"privacy", "auth-int", ""},
		{"privacy", "auth,auth-int,auth-conf", "qop=auth-conf,"},
		{"integrity", "auth", ""},
		{"integrity,privacy", "auth,auth-int", "qop=auth-int,"},
	} {
		cf := conf.New(map[string]string{"hadoop.rpc.protection": tt.demanded, "yarn.resourcemanager.hostname": "h"})
		creds := token.New()
		creds.Tokens["t"] = token.Token{Kind: token.KindAMRM, Identifier: []byte("i"), Password: []byte("p")}
		m, err := NewMaster(cf, creds, rpc.Retry{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := NewNodes(cf, rpc.Retry{})
		if err != nil {
			t.Fatal(err)
		}
		node := NodeID{"n1", 1}
		n.Learn([]NMToken{{node, token.Token{Identifier: []byte("i"), Password: []byte("p")}}})
		for name, l := range map[string]rpc.Login{"master": m.login(), "node": n.login(node)} {
			offer := rpc.Auth{Method: "TOKEN", Mechanism: "DIGEST-MD5", ServerID: "default"}
			_, mechanism, err := l.Start(t.Context(), "h:1", []rpc.Auth{offer})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := mechanism.Step([]byte(challenge + `"` + tt.offered + `"`))
			if refused := err != nil; refused != (tt.chosen == "") || !strings.Contains(string(answer)+",", tt.chosen) {
				t.Errorf("%s: %s where %s is offered: %q, %v", name, tt.demanded, tt.offered, answer, err)
			}
		}
		_, _ = m.Close(), n.Close()
	}
}

// TestWhatIsSubmitted: the reservation of an application and the time for which its attempts
// count reach the ResourceManager.
func TestWhatIsSubmitted(t *testing.T) {
	r := ReservationID{Timestamp: 1700000000000, Number: 12}
	b, err := proto.Marshal(Submission{Reservation: r, AttemptsWithin: 10 * time.Minute, MaxAttempts: 10}.proto())
	if err != nil {
		t.Fatal(err)
	}
	var p wire.ApplicationSubmissionContextProto
	if err := proto.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	if p.GetReservationId().GetClusterTimestamp() != r.Timestamp || p.GetReservationId().GetId() != r.Number || p.GetAttemptFailuresValidityInterval() != 600000 || p.GetMaxAppAttempts() != 10 {
		t.Errorf("submitted is %v", &p)
	}
	if p := (Submission{}).proto(); p.ReservationId != nil || p.GetAttemptFailuresValidityInterval() != -1 {
		t.Errorf("with nothing, submitted is %v", p)
	}
}

package master

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/mount"
	pb "holdfast/proto"
)

// TestCommitsFitIntoMessages: however much was committed, and however long its
// names are, each message is well below what gRPC takes, and nothing is left out.
func TestCommitsFitIntoMessages(t *testing.T) {
	const grpcLimit = 4 << 20 // google.golang.org/grpc, defaultServerMaxReceiveMessageSize
	c := NewCommits()
	dir := strings.Repeat(strings.Repeat("d", 255)+"/", 15)
	for i := range commitsLimit {
		path := "./out"
		if i%5000 == 4999 {
			path = "./logs"
		}
		c.Add(path, mount.Commit{Name: fmt.Sprint(dir, i), From: fmt.Sprint(dir, "tmp-", i), Size: int64(i)})
	}
	messages := c.Take()
	var sizes []int64
	for _, m := range messages {
		if n := proto.Size(m); n > grpcLimit/2 {
			t.Errorf("a message of %d files has %d bytes", len(m.Files), n)
		}
		for _, f := range m.Files {
			sizes = append(sizes, f.Size)
			if want := f.Size%5000 == 4999; (m.Path == "./logs") != want {
				t.Errorf("file %d is told of %s", f.Size, m.Path)
			}
		}
	}
	for i, n := range sizes {
		if n != int64(i) {
			t.Fatalf("the file that is told as number %d is %d", i, n)
		}
	}
	if len(sizes) != commitsLimit {
		t.Errorf("%d files are told of %d", len(sizes), commitsLimit)
	}
	c.Requeue()
	if again := c.Take(); len(again) != len(messages) {
		t.Errorf("said again, it is %d messages, and was %d", len(again), len(messages))
	}
}

// TestWhatIsSentCanBeEncoded: a message that cannot ends the stream, and commits are sent
// again on the next one. Names of files keep all bytes.
func TestWhatIsSentCanBeEncoded(t *testing.T) {
	const name = "r\xe9sum\xe9.txt"
	commits := NewCommits()
	commits.Add("./out", mount.Commit{Name: name, From: name})
	c := &Conn{out: make(chan *pb.FromAgent, 2)}
	c.Send(&pb.FromAgent{Message: &pb.FromAgent_Committed{Committed: commits.Take()[0]}})
	c.Send(&pb.FromAgent{Message: &pb.FromAgent_AgentFailure{AgentFailure: &pb.AgentFailure{Detail: "reading " + name}}})
	for range 2 {
		m := <-c.out
		if _, err := proto.Marshal(m); err != nil {
			t.Errorf("%T: %v", m.Message, err)
		}
		if c := m.GetCommitted(); c != nil && (string(c.Files[0].Name) != name || string(c.Files[0].From) != name) {
			t.Errorf("reported is %v", c)
		}
	}
}

package master

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/mount"
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

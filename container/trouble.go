package container

import (
	"errors"
	"io/fs"
	"syscall"

	"holdfast/proto"
)

// trouble is an error that says who could do better.
type trouble struct {
	error
	node     bool // another node might
	hopeless bool // nobody
}

func (t *trouble) Unwrap() error { return t.error }

func nodeTrouble(err error) error { return &trouble{error: err, node: true} }
func hopeless(err error) error    { return &trouble{error: err, hopeless: true} }

// storeTrouble judges an error of a store: what is not there or not permitted
// is so on every node.
func storeTrouble(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ENOTDIR) {
		return hopeless(err)
	}
	return nodeTrouble(err)
}

func asTrouble(err error) *proto.AgentFailure {
	t := &proto.AgentFailure{Detail: err.Error()}
	var told *trouble
	if errors.As(err, &told) {
		t.NodeSpecific, t.Permanent = told.node, told.hopeless
	} else {
		t.NodeSpecific = true
	}
	return t
}

package rpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/wire/common"
)

// hedgeDelay is how long a call may go without an answer until the service's other
// servers are asked as well, one after the other. Waiting for a server that hangs, or a
// host that is silent, is useless once another one has taken over; where the server is
// only slow, the others answer that they are in standby.
//
// Routers (router-based federation) are all active, and nothing in the configuration tells
// them from NameNodes; each passes a call on under ids of its own, by which no retry cache
// knows it. StandbyException does not tell them apart either: a Router throws it while it
// starts. So a call that must not be carried out twice is made at another server only if that
// one says that it has the protocol OneActive.
const hedgeDelay = 2 * time.Second

// answer is the result of asking the server at Addresses[index].
type answer struct {
	index int
	resp  proto.Message
	sent  bool
	err   error
}

// taken reports whether the server is the active one: it has carried out the call, or has
// thrown an exception that the call has caused.
func (a answer) taken() bool {
	var remote *RemoteError
	return a.err == nil || errors.As(a.err, &remote) && !remote.Fatal && !IsStandby(remote) && !IsRetriable(remote) && !IsDenied(remote)
}

// attempt makes one call at the active address and, if Retry allows a call to be sent twice, at
// the others after hedgeDelay, as far as they may be asked; the first of these that takes it
// becomes the active one. sent
// reports whether a server may have received the call, and index which server's answer it is.
func (c *Client) attempt(ctx context.Context, id, retry int32, method string, req, resp proto.Message) (index int, sent bool, err error) {
	first := c.preferred()
	anywhere := c.o.Anywhere != nil && c.o.Anywhere(method)
	if len(c.o.Addresses) == 1 || !c.o.Retry.Resend || !anywhere && c.o.OneActive == "" {
		sent, err = c.ask(ctx, first, id, retry, c.o.Protocol, method, req, resp)
		return first, sent, err
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer)
	open := map[int]bool{} // that are being asked
	ask := func(index int, resp proto.Message) {
		open[index] = true
		go func() {
			if index != first && !anywhere && !c.oneActive(asking, index) {
				answers <- answer{index, resp, false, errNotAsked}
				return
			}
			sent, err := c.ask(asking, index, id, retry, c.o.Protocol, method, req, resp)
			answers <- answer{index, resp, sent, err}
		}()
	}
	kind := resp.ProtoReflect().Type() // the message itself is being filled from here on
	ask(first, resp)
	hedge := time.NewTicker(hedgeDelay)
	defer hedge.Stop()
	for other := first; ; {
		select {
		case <-hedge.C:
			if other = c.after(other, first); !open[other] {
				ask(other, kind.New().Interface())
			}
		case a := <-answers:
			delete(open, a.index)
			sent = sent || a.sent
			if a.index != first && !a.taken() {
				continue
			}
			cancel()
			for range open {
				late := <-answers
				sent = sent || late.sent
			}
			if a.index != first {
				c.prefer(a.index, first)
				proto.Reset(resp)
				proto.Merge(resp, a.resp)
			}
			return a.index, sent, a.err
		}
	}
}

// errNotAsked is of a server at which a call may not be made while another one has it.
var errNotAsked = errors.New("another server may be active at the same time")

// metaProtocol says which protocols a server has. It is served on the connections of all others
// (ProtobufRpcEngine.ProtoBufRpcInvoker).
const metaProtocol = "org.apache.hadoop.ipc.ProtocolMetaInfoPB"

// oneActive reports whether the server at an address says that at most one of the servers is
// active. What one has answered holds for all, from then on.
func (c *Client) oneActive(ctx context.Context, index int) bool {
	c.mu.Lock()
	known, one := c.kindKnown, c.oneIsActive
	id := c.nextID()
	c.mu.Unlock()
	if known {
		return one
	}
	resp := &common.GetProtocolSignatureResponseProto{}
	if _, err := c.ask(ctx, index, id, 0, metaProtocol, "getProtocolSignature", &common.GetProtocolSignatureRequestProto{
		Protocol: &c.o.OneActive, RpcKind: proto.String(common.RpcKindProto_RPC_PROTOCOL_BUFFER.String()),
	}, resp); err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kindKnown, c.oneIsActive = true, len(resp.GetProtocolSignature()) > 0
	return c.oneIsActive
}

// after returns the index that follows another one, skipping first.
func (c *Client) after(index, first int) int {
	for {
		if index = (index + 1) % len(c.o.Addresses); index != first {
			return index
		}
	}
}

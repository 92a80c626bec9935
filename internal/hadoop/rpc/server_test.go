package rpc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/wire/common"
)

const protocol = "org.example.EchoProtocolPB"

// The echo protocol takes and returns UserInformationProto.
func user(s string) *common.UserInformationProto {
	return &common.UserInformationProto{EffectiveUser: &s}
}

// request is a call as a server got it.
type request struct {
	header *common.RpcRequestHeaderProto
	method *common.RequestHeaderProto
	body   *common.UserInformationProto
}

// server is the far side of one connection, after its header and context.
type server struct {
	net.Conn
	t       testing.TB
	hello   []byte
	context *common.IpcConnectionContextProto
}

// accept reads the connection header, and without SASL the context.
func accept(t testing.TB, c net.Conn) *server {
	s := &server{Conn: c, t: t, hello: make([]byte, 7), context: &common.IpcConnectionContextProto{}}
	if _, err := io.ReadFull(c, s.hello); err != nil {
		t.Errorf("read the connection header: %v", err)
		return s
	}
	if s.hello[6] == 0 {
		h := &common.RpcRequestHeaderProto{}
		if _, err := s.read(h, s.context); err != nil || h.GetCallId() != -3 {
			t.Errorf("read the connection context: call %d, %v", h.GetCallId(), err)
		}
	}
	return s
}

// read takes a packet apart; it returns what is left over.
func (s *server) read(messages ...proto.Message) ([]byte, error) {
	var l [4]byte
	if _, err := io.ReadFull(s.Conn, l[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(l[:]))
	if _, err := io.ReadFull(s.Conn, b); err != nil {
		return nil, err
	}
	return split(b, messages...)
}

func split(b []byte, messages ...proto.Message) ([]byte, error) {
	for _, m := range messages {
		body, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return nil, errors.New("cut off")
		}
		if err := proto.Unmarshal(body, m); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	return b, nil
}

func join(messages ...proto.Message) []byte {
	b := make([]byte, 4)
	for _, m := range messages {
		body, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		b = protowire.AppendBytes(b, body)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// next returns the next call or ping.
func (s *server) next() (request, error) {
	r := request{&common.RpcRequestHeaderProto{}, &common.RequestHeaderProto{}, &common.UserInformationProto{}}
	rest, err := s.read(r.header)
	if err == nil && r.header.GetCallId() >= 0 {
		_, err = split(rest, r.method, r.body)
	}
	return r, err
}

func success(r request) *common.RpcResponseHeaderProto {
	return &common.RpcResponseHeaderProto{
		CallId: proto.Uint32(uint32(r.header.GetCallId())), Status: common.RpcResponseHeaderProto_SUCCESS.Enum(), ClientId: r.header.GetClientId(),
	}
}

func (s *server) reply(r request) {
	s.Write(join(success(r), r.body))
}

func (s *server) throw(r request, class, message string, fatal bool) {
	h := success(r)
	h.Status = common.RpcResponseHeaderProto_ERROR.Enum()
	if fatal {
		h.Status = common.RpcResponseHeaderProto_FATAL.Enum()
	}
	h.ExceptionClassName, h.ErrorMsg = &class, &message
	h.ErrorDetail = common.RpcResponseHeaderProto_ERROR_APPLICATION.Enum()
	s.Write(join(h))
}

// each hands over calls, and pings, until the connection ends.
func (s *server) each(take func(request)) {
	for {
		r, err := s.next()
		if err != nil {
			return
		}
		take(r)
	}
}

// echo answers until the connection ends.
func (s *server) echo() {
	s.each(func(r request) {
		if r.header.GetCallId() >= 0 {
			s.reply(r)
		}
	})
}

// standby refuses all calls, as the other one of a pair does.
func standby(s *server) {
	s.each(func(r request) {
		s.throw(r, "org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state standby\n\tat x", false)
	})
}

// hang reads and answers nothing.
func hang(s *server) { s.each(func(request) {}) }

var errRefused = errors.New("connection refused")

// farm is a network of fake servers, by address, over net.Pipe.
type farm struct {
	t     testing.TB
	serve map[string]func(s *server) // none: refused
	wg    sync.WaitGroup

	mu    sync.Mutex
	dials []string
}

func newFarm(t testing.TB, serve map[string]func(*server)) *farm {
	return &farm{t: t, serve: serve}
}

func (f *farm) dial(_ context.Context, _, address string) (net.Conn, error) {
	f.mu.Lock()
	f.dials = append(f.dials, address)
	f.mu.Unlock()
	serve, ok := f.serve[address]
	if !ok {
		return nil, errRefused
	}
	near, far := net.Pipe()
	f.wg.Go(func() {
		defer far.Close()
		serve(accept(f.t, far))
	})
	return near, nil
}

func (f *farm) dialled() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.dials...)
}

// client of the farm, ended with the test's body by the returned function.
func (f *farm) client(o rpc.Options) (*rpc.Client, func()) {
	o.Protocol, o.Dial = protocol, f.dial
	if o.User == "" && o.Login == nil {
		o.User = "alice"
	}
	c := rpc.New(o)
	return c, func() {
		c.Close()
		f.wg.Wait()
	}
}

func call(c rpc.Caller, text string) error { return callContext(context.Background(), c, text) }

func callContext(ctx context.Context, c rpc.Caller, text string) error {
	resp := &common.UserInformationProto{}
	if err := c.Call(ctx, "echo", user(text), resp); err != nil {
		return err
	}
	if resp.GetEffectiveUser() != text {
		return errors.New("the answer to another call: " + resp.GetEffectiveUser())
	}
	return nil
}

package torchfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"holdfast/hdfsckpt/limit"
)

// Unpickled values are nil, bool, int64, float64, string, []byte, and the following.
type (
	tuple  []any
	list   struct{ items []any } // sets too
	dict   struct{ keys, values []any }
	global struct{ module, name string } // a class or a function, by its name only
	// persistent is a reference to something outside the pickle.
	persistent struct{ id any }
	// object stands for the result of a call, which is not executed.
	object struct {
		of    any // what was called: a global, in sound pickles
		args  any
		state any  // given to it afterwards
		items list // appended to it
		pairs dict // set in it
	}
	// bigInt is an integer that does not fit into an int64, little endian.
	bigInt []byte
)

type mark struct{}

// unpickler executes a pickle's program, except for calls. The memory that it allocates is
// bounded: an operation pushes at most one value, and what values take is counted.
type unpickler struct {
	b       []byte
	at      int
	stack   []any
	memo    map[uint64]any
	account *limit.Account
}

// What values take in memory, in bytes.
const (
	valueSize      = 16 // on the stack, or in a collection
	sliceSize      = 24
	collectionSize = 32
	objectSize     = 112
	memoSize       = 40
)

var errPickle = errors.New("the pickle is not readable")

// unpickle reads one pickle of protocol 2 to 5, and returns its value and length. What the value
// takes is counted in account.
func unpickle(b []byte, account *limit.Account) (any, int, error) {
	u := &unpickler{b: b, memo: map[uint64]any{}, account: account}
	for {
		op, err := u.take(1)
		if err != nil {
			return nil, u.at, err
		}
		if op[0] == '.' {
			v, err := u.pop()
			return v, u.at, err
		}
		if err := u.step(op[0]); err != nil {
			return nil, u.at, fmt.Errorf("at byte %d (%q): %w", u.at-1, op[0], err)
		}
	}
}

func (u *unpickler) take(n uint64) ([]byte, error) {
	if n > uint64(len(u.b)-u.at) {
		return nil, fmt.Errorf("%w: it is cut off", errPickle)
	}
	b := u.b[u.at : u.at+int(n)]
	u.at += int(n)
	return b, nil
}

// number reads an integer of n bytes, at most 8, little endian.
func (u *unpickler) number(n uint64) (uint64, error) {
	b, err := u.take(n)
	if err != nil {
		return 0, err
	}
	var whole [8]byte
	copy(whole[:], b)
	return binary.LittleEndian.Uint64(whole[:]), nil
}

// counted reads a length of n bytes, and then as many bytes as it says.
func (u *unpickler) counted(n uint64) ([]byte, error) {
	length, err := u.number(n)
	if err != nil {
		return nil, err
	}
	return u.take(length)
}

func (u *unpickler) line() (string, error) {
	n := bytes.IndexByte(u.b[u.at:], '\n')
	if n < 0 {
		return "", fmt.Errorf("%w: it is cut off", errPickle)
	}
	s := string(u.b[u.at : u.at+n])
	u.at += n + 1
	return s, nil
}

func (u *unpickler) push(v any) error {
	u.stack = append(u.stack, v)
	return u.account.Spend(valueSize)
}

// pushNew pushes a value that the pickle makes.
func (u *unpickler) pushNew(v any) error {
	if err := u.account.Spend(memoryOf(v)); err != nil {
		return err
	}
	return u.push(v)
}

// memoryOf is what a value takes, without its place in another and without what is in it.
func memoryOf(v any) int64 {
	switch v := v.(type) {
	case string:
		return collectionSize/2 + int64(len(v))
	case global:
		return collectionSize + int64(len(v.module)+len(v.name))
	case tuple:
		return sliceSize + valueSize*int64(len(v))
	case *list, *dict:
		return collectionSize
	case *object:
		return objectSize
	case []byte, persistent, bigInt:
		return collectionSize / 2
	}
	return 8
}

func (u *unpickler) pop() (any, error) {
	v, err := u.top()
	if err == nil {
		u.stack = u.stack[:len(u.stack)-1]
	}
	return v, err
}

func (u *unpickler) top() (any, error) {
	if len(u.stack) == 0 {
		return nil, fmt.Errorf("%w: its stack is empty", errPickle)
	}
	v := u.stack[len(u.stack)-1]
	if _, ok := v.(mark); ok {
		return nil, fmt.Errorf("%w: there is a mark where a value should be", errPickle)
	}
	return v, nil
}

func (u *unpickler) popN(n int) (tuple, error) {
	t := make(tuple, n)
	for i := n - 1; i >= 0; i-- {
		v, err := u.pop()
		if err != nil {
			return nil, err
		}
		t[i] = v
	}
	return t, nil
}

// sinceMark pops the values above the last mark, and the mark.
func (u *unpickler) sinceMark() (tuple, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, ok := u.stack[i].(mark); ok {
			t := append(tuple{}, u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return t, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no mark", errPickle)
}

// step executes one operation (opcodes in pickletools).
func (u *unpickler) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := u.take(1)
		return err
	case 0x95: // FRAME
		_, err := u.take(8)
		return err
	case '(':
		return u.push(mark{})
	case '0': // POP
		_, err := u.pop()
		return err
	case '1': // POP_MARK
		_, err := u.sinceMark()
		return err
	case '2': // DUP
		v, err := u.top()
		if err != nil {
			return err
		}
		return u.push(v)
	case 'q', 'r', 0x94, 'h', 'j':
		return u.remember(op)
	case 'c', 0x93, 'R', 0x81, 0x92, 'b', 'Q':
		return u.call(op)
	case ')', 't', 0x85, 0x86, 0x87, ']', 'l', 'a', 'e', '}', 'd', 's', 'u', 0x8f, 0x90, 0x91:
		return u.collect(op)
	}
	v, err := u.scalar(op)
	if err != nil {
		return err
	}
	return u.pushNew(v)
}

func (u *unpickler) scalar(op byte) (any, error) {
	switch op {
	case 'N':
		return nil, nil
	case 0x88:
		return true, nil
	case 0x89:
		return false, nil
	case 'K':
		n, err := u.number(1)
		return int64(n), err
	case 'M':
		n, err := u.number(2)
		return int64(n), err
	case 'J':
		n, err := u.number(4)
		return int64(int32(n)), err
	case 0x8a: // LONG1
		return u.long(1)
	case 0x8b: // LONG4
		return u.long(4)
	case 'G': // BINFLOAT, big endian
		b, err := u.take(8)
		if err != nil {
			return nil, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case 0x8c: // SHORT_BINUNICODE
		b, err := u.counted(1)
		return string(b), err
	case 'X': // BINUNICODE
		b, err := u.counted(4)
		return string(b), err
	case 0x8d: // BINUNICODE8
		b, err := u.counted(8)
		return string(b), err
	case 'U', 'C': // SHORT_BINSTRING, SHORT_BINBYTES
		return u.counted(1)
	case 'T', 'B': // BINSTRING, BINBYTES
		return u.counted(4)
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		return u.counted(8)
	}
	return nil, fmt.Errorf("%w: the operation is not known", errPickle)
}

func (u *unpickler) long(n uint64) (any, error) {
	b, err := u.counted(n)
	if err != nil {
		return nil, err
	}
	if len(b) > 8 {
		return bigInt(b), nil
	}
	var v int64
	if len(b) > 0 && b[len(b)-1] >= 0x80 {
		v = -1
	}
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | int64(b[i])
	}
	return v, nil
}

func (u *unpickler) remember(op byte) error {
	var key uint64
	var err error
	switch op {
	case 'q', 'h':
		key, err = u.number(1)
	case 'r', 'j':
		key, err = u.number(4)
	default: // MEMOIZE
		key = uint64(len(u.memo))
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' {
		v, ok := u.memo[key]
		if !ok {
			return fmt.Errorf("%w: it remembers nothing as %d", errPickle, key)
		}
		return u.push(v)
	}
	v, err := u.top()
	if err == nil {
		u.memo[key] = v
		err = u.account.Spend(memoSize)
	}
	return err
}

// call records a call that the pickle makes.
func (u *unpickler) call(op byte) error {
	switch op {
	case 'c': // GLOBAL
		module, err := u.line()
		if err != nil {
			return err
		}
		name, err := u.line()
		if err != nil {
			return err
		}
		return u.pushNew(global{module, name})
	case 'Q': // BINPERSID
		id, err := u.pop()
		if err != nil {
			return err
		}
		return u.pushNew(persistent{id})
	case 0x92: // NEWOBJ_EX: keywords are of no interest
		if _, err := u.pop(); err != nil {
			return err
		}
	}
	pair, err := u.popN(2)
	if err != nil {
		return err
	}
	switch op {
	case 0x93: // STACK_GLOBAL
		module, ok1 := pair[0].(string)
		name, ok2 := pair[1].(string)
		if !ok1 || !ok2 {
			return fmt.Errorf("%w: the name of a class is no text", errPickle)
		}
		return u.pushNew(global{module, name})
	case 'b': // BUILD
		if o, ok := pair[0].(*object); ok {
			o.state = pair[1]
		}
		return u.push(pair[0])
	}
	return u.pushNew(&object{of: pair[0], args: pair[1]})
}

func (u *unpickler) collect(op byte) error {
	switch op {
	case ')':
		return u.pushNew(tuple{})
	case ']', 0x8f:
		return u.pushNew(&list{})
	case '}':
		return u.pushNew(&dict{})
	case 0x85, 0x86, 0x87:
		t, err := u.popN(int(op - 0x84))
		if err != nil {
			return err
		}
		return u.pushNew(t)
	case 'a', 's':
		t, err := u.popN(1 + map[byte]int{'s': 1}[op])
		if err != nil {
			return err
		}
		return u.add(op, t)
	}
	t, err := u.sinceMark()
	if err != nil {
		return err
	}
	switch op {
	case 't':
		return u.pushNew(t)
	case 'l', 0x91: // LIST, FROZENSET
		return u.pushNew(&list{t})
	case 'd':
		if err := u.pushNew(&dict{}); err != nil {
			return err
		}
	}
	return u.add(op, t)
}

// add adds values to the collection or object on the top of the stack.
func (u *unpickler) add(op byte, t tuple) error {
	v, err := u.top()
	if err == nil {
		err = u.account.Spend(valueSize * int64(len(t)))
	}
	if err != nil {
		return err
	}
	if op == 'a' || op == 'e' || op == 0x90 { // APPEND, APPENDS, ADDITEMS
		switch v := v.(type) {
		case *list:
			v.items = append(v.items, t...)
			return nil
		case *object:
			v.items.items = append(v.items.items, t...)
			return nil
		}
		return fmt.Errorf("%w: it appends to what is no list", errPickle)
	}
	d, ok := v.(*dict)
	if o, isObject := v.(*object); isObject {
		d, ok = &o.pairs, true
	}
	if !ok || len(t)%2 != 0 {
		return fmt.Errorf("%w: it sets items of what is no dictionary", errPickle)
	}
	for i := 0; i < len(t); i += 2 {
		d.keys, d.values = append(d.keys, t[i]), append(d.values, t[i+1])
	}
	return nil
}

// get returns the value of a key; nil if there is none. Of several entries the last counts.
func (d *dict) get(key string) any {
	for i := len(d.keys) - 1; i >= 0; i-- {
		if k, ok := d.keys[i].(string); ok && k == key {
			return d.values[i]
		}
	}
	return nil
}

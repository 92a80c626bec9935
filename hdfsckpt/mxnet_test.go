package hdfsckpt_test

import (
	"bytes"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
)

// TestMXNetCheckpoints: a file of arrays is complete if it ends behind their names, and what
// Module writes beside it belongs to it.
func TestMXNetCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	params, states := recorded(t, "mxnet/module-0002.params"), recorded(t, "mxnet/module-0002.states")
	older := bytes.Replace(params, []byte("\xc9\xfa\x93\xf9"), []byte("\xc8\xfa\x93\xf9"), 1)
	put(t, s, "net-0001.params", params)
	put(t, s, "net-0001.states", states)
	put(t, s, "net-0002.params", params)
	put(t, s, "net-0002.states", states)
	put(t, s, "net-0003.params", params)
	put(t, s, "net-symbol.json", []byte("{}"))
	put(t, s, "first-0000.params", params)
	put(t, s, "first-0001.params", params)
	put(t, s, "first-0001.states", states)
	put(t, s, "gluon-0010.params", recorded(t, "mxnet/kinds.params"))
	put(t, s, "gluon-0011.params", recorded(t, "mxnet/numpy.params"))
	put(t, s, "gluon-0011.states", states)
	put(t, s, "gluon-0012.params", recorded(t, "mxnet/sparse.params"))
	put(t, s, "14/list.params", recorded(t, "mxnet/list.params"))
	put(t, s, "step-15/list.params", recorded(t, "mxnet/list.params"))
	put(t, s, "best.params", params)
	put(t, s, "cut-20.params", params[:len(params)-1])
	put(t, s, "cut-21.params", nil)
	put(t, s, "other-30.params", []byte("lr = 0.1\n"))
	put(t, s, "older-31.params", older)
	put(t, s, "longer-32.params", append(bytes.Clone(params), 0))
	put(t, s, "other.params", []byte("lr = 0.1\n"))
	put(t, s, "empty.params", nil)
	put(t, s, "alone.states", states)
	want := `best.params mxnet 1 complete
first-0000.params mxnet 1 complete
first-0001.params mxnet 1 complete
net-0001.params mxnet 1 complete
net-0002.params mxnet 1 complete
net-0003.params mxnet 1 torn (it has no file net-0003.states, as all before it have: the save did not get that far)
gluon-0010.params mxnet 1 complete
gluon-0011.params mxnet 1 complete
gluon-0012.params mxnet 1 complete
14/list.params mxnet 1 complete
step-15/list.params mxnet 1 complete
cut-20.params mxnet 1 torn (it ends in the names of its arrays, which are written last)
cut-21.params mxnet 1 torn (it is empty)
other-30.params mxnet 1 unchecked (it does not begin as MXNet's lists of arrays do)
older-31.params mxnet 1 unchecked (in array 1 of 2 there is something else, or the older form, which is not read: it begins with 0xf993fac8)
longer-32.params mxnet 1 unchecked (it has 161 bytes, and its names end at 160)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	seal(t, s, "net-0002.params")
	for _, c := range list(t, s) {
		if c.Name == "net-0002.params" && (c.State != format.Sealed || len(c.Manifest.Files) != 2) {
			t.Errorf("sealed are %s with %+v", c.State, c.Manifest)
		}
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 3 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
}

// TestMXNetIsRetained: with its states, whether the program saves over both or removes both.
func TestMXNetIsRetained(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	params, states := recorded(t, "mxnet/module-0002.params"), recorded(t, "mxnet/module-0002.states")
	for range 2 {
		publish(t, s, "last.params", bytes.Clone(params))
		publish(t, s, "last.states", bytes.Clone(states))
	}
	for _, name := range []string{"net-0001", "net-0002"} {
		publish(t, s, name+".params", bytes.Clone(params))
		publish(t, s, name+".states", bytes.Clone(states))
	}
	remove(t, s, "net-0001.params")
	remove(t, s, "net-0001.states")
	retained := listRetained(t, s)
	for _, c := range retained {
		if c.Kind != formats.MXNet || !c.Whole() || len(c.Files) != 2 {
			t.Errorf("retained is %+v", c)
		}
	}
	if len(retained) != 2 {
		t.Errorf("%d are retained", len(retained))
	}
}

// TestMXNetIsCut: wherever a file was cut off, it is torn.
func TestMXNetIsCut(t *testing.T) {
	for _, name := range []string{"module-0002", "list", "kinds", "sparse", "numpy"} {
		b := recorded(t, "mxnet/"+name+".params")
		s := openLocal(t, t.TempDir())
		for n := range b {
			put(t, s, "net-1.params", b[:n])
			if c := list(t, s); len(c) != 1 || c[0].State != format.Torn || !c[0].Certain {
				t.Errorf("%d bytes of %s are %+v", n, name, c)
			}
		}
		s.Close()
	}
}

package torchfile

import (
	"fmt"
	"strings"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/tensor"
)

// storage is where the bytes of tensors lie.
type storage struct {
	key      string
	kind     tensor.Kind // "" if the storage has none of its own
	elements int64       // bytes, if it has no kind
}

// view is a tensor as a pickle describes it.
type view struct {
	storage       storage
	kind          tensor.Kind
	offset        int64
	shape, stride []int64
}

const (
	maxNesting = 500  // of containers
	maxName    = 4096 // bytes

	// A pickle can refer to a value any number of times, so that the search has a budget:
	// maxCost, and maxCostInEach for each byte of the pickle. A container or tensor costs
	// visit and the length of its name. Real pickles cost less than five for each byte.
	maxCost       = 1 << 20
	maxCostInEach = 50
	visit         = 64

	maxDimensions = 64 // PyTorch's own limit
)

// finder collects the tensors in an object.
type finder struct {
	left  int // of what the rest may cost
	found []Tensor
}

// newFinder returns a finder for the object of a pickle of that many bytes.
func newFinder(pickle int) *finder { return &finder{left: maxCost + maxCostInEach*pickle} }

// find looks at a value that has a name: the keys that lead to it, with dots.
func (f *finder) find(name string, v any, depth int) error {
	f.left -= visit + len(name)
	if f.left < 0 || depth > maxNesting || len(name) > maxName {
		return limit.Exceeded("the pickle describes more than what is looked at: values in %d others, or names of more than %d bytes, or much more than it has bytes", maxNesting, maxName)
	}
	below := func(key string) string {
		if name == "" {
			return key
		}
		return name + "." + key
	}
	each := func(list []any) error {
		for i, x := range list {
			if !mayHold(x) {
				continue
			}
			if err := f.find(below(fmt.Sprint(i)), x, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	switch v := v.(type) {
	case tuple:
		return each(v)
	case *list:
		return each(v.items)
	case *dict:
		return f.dict(below, v, depth)
	case *object:
		w, ok, err := viewOf(v, 0)
		if err != nil {
			return fmt.Errorf("the tensor %s: %w", name, err)
		}
		if ok {
			f.found = append(f.found, Tensor{Name: name, Kind: w.kind, Shape: w.shape, view: w})
			return nil
		}
		if inner, ok := wrapped(v); ok {
			return f.find(name, inner, depth+1)
		}
		if err := f.dict(below, &v.pairs, depth); err != nil {
			return err
		}
		if v.of == (global{"collections", "OrderedDict"}) {
			return nil // its state is about the modules, not of them
		}
		if err := each(v.items.items); err != nil {
			return err
		}
		if err := f.find(name, v.state, depth+1); err != nil {
			return err
		}
		return f.find(name, v.args, depth+1)
	}
	return nil
}

func (f *finder) dict(below func(string) string, d *dict, depth int) error {
	for i, k := range d.keys {
		if !mayHold(d.values[i]) {
			continue
		}
		if err := f.find(below(keyText(k)), d.values[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// mayHold reports whether a value is a tensor or may contain one. Other values get no name,
// which may be much longer than the value.
func mayHold(v any) bool {
	switch v.(type) {
	case tuple, *list, *dict, *object:
		return true
	}
	return false
}

func keyText(k any) string {
	switch k := k.(type) {
	case string:
		return k
	case []byte:
		return string(k)
	case int64, bool, float64:
		return fmt.Sprint(k)
	}
	return "?"
}

// wrapped returns the tensor in a parameter, or in a tensor of a subclass (torch._utils._rebuild_parameter, torch._tensor._rebuild_from_type_v2).
func wrapped(o *object) (any, bool) {
	args, _ := o.args.(tuple)
	switch o.of {
	case global{"torch._utils", "_rebuild_parameter"}, global{"torch._utils", "_rebuild_parameter_with_state"}:
		if len(args) > 0 {
			return args[0], true
		}
	case global{"torch._tensor", "_rebuild_from_type_v2"}:
		if len(args) > 2 {
			return &object{of: args[0], args: args[2]}, true
		}
	}
	return nil, false
}

// viewOf interprets a call that makes a tensor; false if it makes something else.
func viewOf(o *object, depth int) (view, bool, error) {
	if inner, ok := wrapped(o); ok && depth < maxNesting {
		if x, isObject := inner.(*object); isObject {
			return viewOf(x, depth+1)
		}
	}
	args, _ := o.args.(tuple)
	kindAt := -1
	switch o.of {
	case global{"torch._utils", "_rebuild_tensor"}, global{"torch._utils", "_rebuild_tensor_v2"}, global{"torch._utils", "_rebuild_qtensor"}:
	case global{"torch._utils", "_rebuild_tensor_v3"}:
		kindAt = 6
	default:
		return view{}, false, nil
	}
	if len(args) < 4 || kindAt >= len(args) {
		return view{}, false, fmt.Errorf("%w: it has %d arguments", errPickle, len(args))
	}
	var w view
	var err error
	if w.storage, err = storageOf(args[0]); err != nil {
		return w, false, err
	}
	offset, ok := args[1].(int64)
	if !ok {
		return w, false, fmt.Errorf("%w: its offset is no number", errPickle)
	}
	w.kind, w.offset = w.storage.kind, offset
	if kindAt >= 0 {
		w.kind = kindOf(args[kindAt])
	}
	var ok1, ok2 bool
	w.shape, ok1 = ints(args[2])
	w.stride, ok2 = ints(args[3])
	if !ok1 || !ok2 {
		return w, false, fmt.Errorf("%w: its shape is none", errPickle)
	}
	if _, err := tensor.Span(w.offset, w.shape, w.stride); err != nil {
		return w, false, err
	}
	return w, true, nil
}

// storageOf parses the persistent id of a storage.
func storageOf(v any) (storage, error) {
	if o, ok := v.(*object); ok { // torch.storage.TypedStorage and the like around it
		if args, ok := o.args.(tuple); ok && len(args) > 0 {
			v = args[0]
		}
	}
	p, _ := v.(persistent)
	id, _ := p.id.(tuple)
	if len(id) < 5 {
		return storage{}, fmt.Errorf("%w: it has no storage", errPickle)
	}
	key, ok1 := id[2].(string)
	n, ok2 := id[4].(int64)
	class, ok3 := id[1].(global)
	if !ok1 || !ok2 || !ok3 || n < 0 || n > 1<<56 {
		return storage{}, fmt.Errorf("%w: its storage is not readable", errPickle)
	}
	s := storage{key: key, elements: n}
	if class.name != "UntypedStorage" {
		s.kind = storageKinds[class.name]
		if s.kind == "" {
			s.kind = tensor.Kind(strings.TrimSuffix(class.name, "Storage"))
		}
	}
	return s, nil
}

// storageKinds has the element type of each storage class in torch/storage.py.
var storageKinds = map[string]tensor.Kind{
	"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
	"LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
	"BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
	"QUInt8Storage": "quint8", "QInt8Storage": "qint8", "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
}

// kindOf parses a dtype such as torch.float32.
func kindOf(v any) tensor.Kind {
	if g, ok := v.(global); ok {
		return tensor.Kind(g.name)
	}
	return "unknown"
}

// ints returns the integers of a tuple or a torch.Size.
func ints(v any) ([]int64, bool) {
	if o, ok := v.(*object); ok && o.of == (global{"torch", "Size"}) {
		args, _ := o.args.(tuple)
		if len(args) == 0 {
			return []int64{}, true
		}
		v = args[0]
	}
	var items []any
	switch v := v.(type) {
	case tuple:
		items = v
	case *list:
		items = v.items
	default:
		return nil, false
	}
	if len(items) > maxDimensions {
		return nil, false
	}
	list := make([]int64, len(items))
	for i, x := range items {
		n, ok := x.(int64)
		if !ok {
			return nil, false
		}
		list[i] = n
	}
	return list, true
}

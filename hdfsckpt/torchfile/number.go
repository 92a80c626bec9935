package torchfile

import "holdfast/hdfsckpt/limit"

// MemoryOfPickle returns how many bytes of memory the objects of a pickle of so many bytes may take.
func MemoryOfPickle(size int64) int64 { return freePickle + picklePerByte*size }

// Number returns the integer to which keys lead in the object that was saved: through
// dictionaries and the attributes of objects. ok is false if they lead to none, or if the
// pickle has more than most bytes or describes more than MemoryOfPickle says.
func (a *Archive) Number(most int64, keys ...string) (n int64, ok bool, err error) {
	r := a.Find(Pickle)
	if r == nil || r.Size > most {
		return 0, false, nil
	}
	text, err := a.read(Pickle, most)
	if err != nil {
		return 0, false, err
	}
	v, _, err := unpickle(text, limit.NewAccount(MemoryOfPickle(int64(len(text)))))
	if limit.IsExceeded(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	for _, k := range keys {
		v = valueOf(v, k)
	}
	n, ok = v.(int64)
	return n, ok, nil
}

// valueOf is what a dictionary has under a key, or the value of an object's attribute; nil if
// there is none.
func valueOf(v any, key string) any {
	if o, ok := v.(*object); ok {
		v = o.state
	}
	d, ok := v.(*dict)
	if !ok {
		return nil
	}
	var found any
	for i, k := range d.keys {
		if k == key {
			found = d.values[i] // of several the last counts
		}
	}
	return found
}

package hdfsckpt

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// tfFile takes the name of a file of a TensorFlow checkpoint apart.
var tfFile = regexp.MustCompile(`^(.+)\.(index|meta|data-(\d{5})-of-(\d{5}))$`)

// isTemporaryPart tells whether a directory is where a save collects its parts.
func isTemporaryPart(name string) bool { return strings.Contains(name, "_temp") }

// bundle is what is there of one TensorFlow checkpoint.
type bundle struct {
	prefix string
	index  *store.Info
	data   map[int]map[int]store.Info // by number of shards, by shard
	files  []File
}

// tensorflow finds the TensorFlow checkpoints among the entries of a directory.
func (l *lister) tensorflow(dir string, entries []store.Info) error {
	bundles := map[string]*bundle{}
	state := false
	for _, e := range entries {
		if e.Name == StateFile && e.Mode.IsRegular() {
			state = true
		}
		m := tfFile.FindStringSubmatch(e.Name)
		if m == nil || e.IsDir() {
			continue
		}
		b := bundles[m[1]]
		if b == nil {
			b = &bundle{prefix: m[1], data: map[int]map[int]store.Info{}}
			bundles[m[1]] = b
		}
		b.files = append(b.files, fileOf(dir, e))
		switch {
		case m[2] == "index":
			b.index = &e
		case m[3] != "":
			shard, _ := strconv.Atoi(m[3])
			of, _ := strconv.Atoi(m[4])
			if b.data[of] == nil {
				b.data[of] = map[int]store.Info{}
			}
			b.data[of][shard] = e
		}
	}
	if len(bundles) == 0 {
		return nil
	}
	current := ""
	if state {
		err := l.limited(func() error {
			now, err := readSaved(l.ctx, l.s, dir)
			if st, parseErr := ParseState(now.text); parseErr == nil {
				current = path.Base(st.Current)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, b := range bundles {
		if b.index == nil && len(b.data) == 0 { // a graph alone
			continue
		}
		l.group.Go(func() error {
			return l.limited(func() error { return l.bundle(dir, b, b.prefix == current) })
		})
	}
	return nil
}

func (l *lister) bundle(dir string, b *bundle, current bool) error {
	c := Checkpoint{
		Name: path.Join(dir, b.prefix), Kind: TensorFlow, Step: stepOf(b.prefix),
		Files: b.files, Current: current, State: Torn,
	}
	for of, shards := range b.data {
		c.Shards = max(c.Shards, of)
		_ = shards
	}
	if b.index == nil {
		c.Why = "it has no index: the save did not get that far"
		l.add(c)
		return nil
	}
	c.last = path.Join(dir, b.index.Name)
	x, err := l.readIndex(c.last)
	if vanished(err) {
		return nil // removed while we looked
	}
	if err != nil && !isContent(err) {
		return err
	}
	if err != nil {
		c.Why = fmt.Sprintf("%s: %v", b.index.Name, err)
		l.add(c)
		return nil
	}
	c.Shards = x.Header.Shards
	c.Why = b.lacks(x)
	if c.Why == "" {
		c.State = Complete
	}
	l.add(c)
	return nil
}

// lacks says which shard is missing or short; "" if none is.
func (b *bundle) lacks(x *tfbundle.Index) string {
	need, have := map[string]int64{}, map[string]int64{}
	for i, size := range x.ShardSizes() {
		name := tfbundle.DataFile(b.prefix, i, x.Header.Shards)
		need[name] = size
		if f, ok := b.data[x.Header.Shards][i]; ok {
			have[name] = f.Size
		}
	}
	return lacking(need, have)
}

// contentError is a file that was read and is not what it should be.
type contentError struct{ error }

func (e contentError) Unwrap() error { return e.error }

func isContent(err error) bool {
	_, ok := err.(contentError)
	return ok
}

func (l *lister) readIndex(name string) (*tfbundle.Index, error) {
	return readIndex(l.ctx, l.s, name)
}

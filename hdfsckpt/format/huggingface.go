package hdfsckpt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// HuggingFace is a directory checkpoint-N of Hugging Face's Trainer: the model,
// the optimizer, the scheduler, each rank's random state and trainer_state.json,
// which the first rank writes last (Trainer._save_checkpoint).
const HuggingFace Kind = "huggingface"

// trainerState is the file without which Trainer cannot go on from a directory.
const trainerState = "trainer_state.json"

var (
	trainerDir = regexp.MustCompile(`^checkpoint-\d+$`)
	// weightsFile is a file of the model's, an adapter's or a shard's values.
	weightsFile = regexp.MustCompile(`^(model|adapter_model|pytorch_model)(_fsdp)?(-\d+-of-\d+)?\.(safetensors|bin)$`)
	// weightsIndex names the shards of a model that was cut.
	weightsIndex = regexp.MustCompile(`\.(safetensors|bin)\.index\.json$`)
	rankState    = regexp.MustCompile(`^rng_state_(\d+)\.pth$`)
	// configs are written before the model.
	configs = map[string]bool{"config.json": true, "generation_config.json": true, "adapter_config.json": true, "README.md": true}
)

// isTrainers tells, by what is in a directory checkpoint-N, whether Trainer has
// written it: it has one of the files that only Trainer writes, or nothing but
// what Trainer writes before the model.
func isTrainers(entries []store.Info) bool {
	onlyConfigs, config := true, false
	for _, e := range entries {
		if e.Name == trainerState || e.Name == "training_args.bin" {
			return true
		}
		onlyConfigs = onlyConfigs && configs[e.Name]
		config = config || e.Name == "config.json" || e.Name == "adapter_config.json"
	}
	return onlyConfigs && config
}

// trainers looks at the directories checkpoint-N of one directory. That they are
// Trainer's shows in each by itself, or, of one that was broken off early, in
// another; of the only one, in that it was begun here (isFirstSave). If it does not,
// they are looked at as any other directory.
func (l *lister) trainers(dir string, dirs []store.Info, depth int) error {
	contents := make([][]store.Info, len(dirs))
	series := l.rule.Format == HuggingFace
	for i, d := range dirs {
		err := l.limited(func() (err error) {
			contents[i], err = l.s.List(l.ctx, path.Join(dir, d.Name))
			return err
		})
		if err != nil && !vanished(err) {
			return err
		}
		for _, e := range contents[i] {
			series = series || e.Name == trainerState
		}
	}
	first := false
	if len(dirs) == 1 && !series && !isTrainers(contents[0]) {
		err := l.limited(func() (err error) {
			first, err = l.isFirstSave(path.Join(dir, dirs[0].Name), contents[0])
			return err
		})
		if err != nil {
			return err
		}
	}
	for i, d := range dirs {
		name := path.Join(dir, d.Name)
		if !series && !first && !isTrainers(contents[i]) {
			if depth < maxDepth {
				l.group.Go(func() error { return l.directory(name, depth+1) })
			}
			continue
		}
		l.group.Go(func() error {
			return l.limited(func() error {
				c := Checkpoint{Name: name, Kind: HuggingFace, Step: numberAtEnd(d.Name), State: Torn, Time: d.ModTime, supposed: first}
				if err := l.belowEntries(name, contents[i], 0, &c); err != nil {
					return err
				}
				if err := l.trainer(&c); err != nil {
					if vanished(err) {
						return nil
					}
					return err
				}
				l.add(c)
				return nil
			})
		})
	}
	return nil
}

// trainer judges a directory of Trainer's.
func (l *lister) trainer(c *Checkpoint) error {
	sizes := map[string]int64{}
	for _, f := range c.Files {
		sizes[strings.TrimPrefix(f.Name, c.Name+"/")] = f.Size
	}
	if _, ok := sizes[trainerState]; !ok {
		c.Why, c.surely = "it has no file "+trainerState+": the save did not get that far", true
		return nil
	}
	c.last = path.Join(c.Name, trainerState)
	if c.tooDeep != "" {
		c.State, c.Why = Unchecked, tooDeepToTell(c.tooDeep)
		return nil
	}
	whole, err := l.endsAsJSON(c.last)
	if err != nil {
		return err
	}
	if !whole {
		c.Why, c.surely = trainerState+" is cut off", true
		return nil
	}
	weights := 0
	need := map[string]int64{}
	for name := range sizes {
		if dir, base := path.Split(name); dir == "" && weightsIndex.MatchString(base) {
			if err := l.shardsOf(path.Join(c.Name, base), need); err != nil {
				if !isContent(err) {
					return err
				}
				c.Why, c.surely = err.Error(), true
				return nil
			}
		}
	}
	for name, size := range sizes {
		base := path.Base(name)
		if path.Dir(name) != "." {
			weights++ // of DeepSpeed or FSDP, which have directories of their own
			continue
		}
		if !weightsFile.MatchString(base) {
			continue
		}
		weights++
		why, err := l.cutOff(path.Join(c.Name, name), size)
		if err != nil {
			return err
		}
		if why != "" {
			c.Why, c.surely = base+": "+why, true
			return nil
		}
	}
	switch c.Why = lacking(need, sizes); {
	case c.Why != "":
		c.surely = true
	case missingRank(sizes) != "":
		c.Why = missingRank(sizes) + " is missing" // another rank may still write it
	case weights == 0:
		c.State, c.Why = Unchecked, "it has no file of weights by a name that is known"
	default:
		c.State = Complete
	}
	return nil
}

// missingRank is the random state of a rank that is not there while that of a
// later one is; "" if none is missing.
func missingRank(sizes map[string]int64) string {
	most := -1
	for name := range sizes {
		if m := rankState.FindStringSubmatch(name); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				most = max(most, n)
			}
		}
	}
	for rank := range min(most, 1<<16) {
		name := fmt.Sprintf("rng_state_%d.pth", rank)
		if _, ok := sizes[name]; !ok {
			return name
		}
	}
	return ""
}

// endsAsJSON tells whether a file ends as a JSON object does.
func (l *lister) endsAsJSON(name string) (bool, error) {
	r, err := l.s.Open(l.ctx, name)
	if err != nil {
		return false, err
	}
	defer r.Close()
	tail := make([]byte, min(r.Size(), 64))
	n, err := r.ReadAt(tail, r.Size()-int64(len(tail)))
	if err != nil && err != io.EOF {
		return false, err
	}
	return bytes.HasSuffix(bytes.TrimSpace(tail[:n]), []byte("}")), nil
}

// longestIndex bounds what is read of an index of shards, and of a header of
// tensors.
const longestIndex = 64 << 20

// shardsOf adds the shards that an index names (its weight_map) to need.
func (l *lister) shardsOf(name string, need map[string]int64) error {
	text, err := l.head(name, 0, longestIndex)
	if err != nil {
		return err
	}
	var index struct {
		Weights map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return contentError{fmt.Errorf("%s: %w", path.Base(name), err)}
	}
	for _, shard := range index.Weights {
		need[shard] = 1
	}
	return nil
}

// head reads at most limit bytes of a file from an offset on.
func (l *lister) head(name string, from, limit int64) ([]byte, error) {
	r, err := l.s.Open(l.ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, max(0, min(r.Size()-from, limit)))
	n, err := r.ReadAt(b, from)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// cutOff says what shows that a file of weights is not all there; "" if nothing
// does.
func (l *lister) cutOff(name string, size int64) (string, error) {
	if path.Ext(name) != safetensorsSuffix {
		return l.cutTorch(name)
	}
	// safetensors: 8 bytes, little endian, with the length of the JSON that
	// follows; each tensor's data_offsets begin behind that.
	begin, err := l.head(name, 0, 8)
	if err != nil {
		return "", err
	}
	if len(begin) < 8 {
		return fmt.Sprintf("it has %d bytes", len(begin)), nil
	}
	length := binary.LittleEndian.Uint64(begin)
	if length > uint64(max(0, size-8)) {
		return fmt.Sprintf("it has %d bytes, and its header alone %d", size, length), nil
	}
	if length > longestIndex {
		return "", nil
	}
	text, err := l.head(name, 8, int64(length))
	if err != nil {
		return "", err
	}
	var tensors map[string]struct {
		Offsets []int64 `json:"data_offsets"`
	}
	_ = json.Unmarshal(dropMetadata(text), &tensors)
	var end int64
	for _, t := range tensors {
		if len(t.Offsets) == 2 {
			end = max(end, t.Offsets[1])
		}
	}
	if need := 8 + int64(length) + end; end >= 0 && size < need {
		return fmt.Sprintf("it has %d bytes, %d are needed", size, need), nil
	}
	return "", nil
}

// dropMetadata leaves out the header's __metadata__, which is of another form.
func dropMetadata(text []byte) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	delete(all, "__metadata__")
	rest, _ := json.Marshal(all) // it was JSON
	return rest
}

func (l *lister) cutTorch(name string) (string, error) {
	r, err := l.s.Open(l.ctx, name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	head := make([]byte, torchfile.MagicSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	if n == 0 {
		return "it is empty", nil
	}
	if !torchfile.IsZip(head[:n]) {
		return "", nil
	}
	w := &watched{r: r}
	if _, err := torchfile.OpenArchive(w, r.Size()); w.failed() != nil {
		return "", w.failed()
	} else if err != nil {
		return err.Error(), nil
	}
	return "", nil
}

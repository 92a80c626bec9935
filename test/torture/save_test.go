package torture

import (
	"fmt"
	"math/rand/v2"
	"path"
)

// An op is one file operation of a task.
type op struct {
	kind string // mkdir, create, write, close, rename, remove, rmdir, put
	task int    // whose mount
	name string // relative to the checkpoint directory
	to   string
	data []byte
	// may says that the operation may fail because others did it already.
	may bool
}

// program is a training program that saves: what TensorFlow's Saver does, in
// the order in which it does it (tensorflow/core/util/tensor_bundle,
// SaveV2 and MergeV2Checkpoints; python/training/saver.py and
// checkpoint_management.py).
type program struct {
	rng       *rand.Rand
	shards    int  // parameter servers that save
	sharded   bool // through PREFIX_temp; otherwise one task writes all
	maxToKeep int  // 0: all
	meta      bool // .meta is written
	absolute  bool // names in `checkpoint` are absolute
	dir       string
	width     int // values of a shard
	chief     int // its task
	saved     []int64
}

const mountPath = "/train_logs"

func (p *program) prefix(step int64) string {
	return path.Join(p.dir, fmt.Sprintf("model.ckpt-%d", step))
}

// file writes a new file in pieces.
func (p *program) file(task int, name string, data []byte) []op {
	ops := []op{{kind: "create", task: task, name: name}}
	for pieces := p.rng.IntN(2); len(data) > 0; pieces-- {
		n := len(data)
		if pieces > 0 {
			n = 1 + p.rng.IntN(n)
		}
		ops = append(ops, op{kind: "write", task: task, name: name, data: data[:n]})
		data = data[n:]
	}
	return append(ops, op{kind: "close", task: task, name: name})
}

// fileByTemporary is how a bundle's files are written: FILE.tempstateN becomes FILE.
func (p *program) fileByTemporary(task int, name string, data []byte) []op {
	tmp := fmt.Sprintf("%s.tempstate%d", name, p.rng.Uint64())
	return append(p.file(task, tmp, data), op{kind: "rename", task: task, name: tmp, to: name})
}

// save is all operations of one save; id tells saves of one step apart.
func (p *program) save(id, step int64) []op {
	prefix := p.prefix(step)
	tensors := tensorsOf(id, step, p.shards, p.width)
	var ops []op
	if p.sharded {
		ops = p.shardedBundle(prefix, tensors)
	} else {
		ops = append(ops, p.fileByTemporary(p.chief, prefix+".data-00000-of-00001", allInOne(tensors))...)
		ops = append(ops, p.fileByTemporary(p.chief, prefix+".index", indexData(inOneShard(tensors), 1))...)
	}
	return append(ops, p.name(step)...)
}

func inOneShard(tensors []tensor) []tensor {
	all := make([]tensor, len(tensors))
	for i, t := range tensors {
		all[i] = tensor{t.name, 0, t.values}
	}
	return all
}

func allInOne(tensors []tensor) []byte { return shardData(inOneShard(tensors), 0) }

func (p *program) shardedBundle(prefix string, tensors []tensor) []op {
	tmp := prefix + "_temp"
	part := func(i int) string { return fmt.Sprintf("%s/part-%05d-of-%05d", tmp, i, p.shards) }
	var parts [][]op
	for i := range p.shards {
		var mine []tensor
		for _, t := range tensors {
			if t.shard == i {
				mine = append(mine, t)
			}
		}
		ops := []op{{kind: "mkdir", task: i, name: tmp, may: true}}
		ops = append(ops, p.fileByTemporary(i, part(i)+".data-00000-of-00001", shardData(mine, i))...)
		ops = append(ops, p.fileByTemporary(i, part(i)+".index", indexData(inOneShard(mine), 1))...)
		parts = append(parts, ops)
	}
	ops := interleave(p.rng, parts)
	merger := p.shards - 1
	for i := range p.shards {
		ops = append(ops, op{kind: "read", task: merger, name: part(i) + ".index"})
	}
	for i := range p.shards {
		ops = append(ops, op{kind: "rename", task: merger, name: part(i) + ".data-00000-of-00001",
			to: fmt.Sprintf("%s.data-%05d-of-%05d", prefix, i, p.shards)})
	}
	ops = append(ops, p.file(merger, prefix+".index", indexData(tensors, p.shards))...)
	for i := range p.shards {
		ops = append(ops, op{kind: "remove", task: merger, name: part(i) + ".index", may: true})
	}
	return append(ops, op{kind: "rmdir", task: merger, name: tmp, may: true})
}

// name is what the chief does once the bundle is there.
func (p *program) name(step int64) []op {
	for i, s := range p.saved {
		if s == step {
			p.saved = append(p.saved[:i], p.saved[i+1:]...)
			break
		}
	}
	p.saved = append(p.saved, step)
	var gone []int64
	for p.maxToKeep > 0 && len(p.saved) > p.maxToKeep {
		gone = append(gone, p.saved[0])
		p.saved = p.saved[1:]
	}
	spell := func(s int64) string {
		if p.absolute {
			return path.Join(mountPath, p.prefix(s))
		}
		return path.Base(p.prefix(s))
	}
	text := fmt.Sprintf("model_checkpoint_path: %q\n", spell(step))
	for _, s := range p.saved {
		text += fmt.Sprintf("all_model_checkpoint_paths: %q\n", spell(s))
	}
	tmp := path.Join(p.dir, fmt.Sprintf("checkpoint.tmp%032x", p.rng.Uint64()))
	ops := p.file(p.chief, tmp, []byte(text))
	ops = append(ops, op{kind: "rename", task: p.chief, name: tmp, to: path.Join(p.dir, "checkpoint")})
	for _, s := range gone {
		if p.meta {
			ops = append(ops, op{kind: "remove", task: p.chief, name: p.prefix(s) + ".meta", may: true})
		}
		ops = append(ops, op{kind: "remove", task: p.chief, name: p.prefix(s) + ".index", may: true})
		ops = append(ops, op{kind: "glob", task: p.chief, name: p.prefix(s) + ".data-?????-of-?????"})
	}
	if p.meta {
		ops = append(ops, p.file(p.chief, p.prefix(step)+".meta", []byte("a graph"))...)
	}
	return ops
}

// interleave mixes the operations of tasks that work at the same time.
func interleave(rng *rand.Rand, lists [][]op) []op {
	var all []op
	for len(lists) > 0 {
		i := rng.IntN(len(lists))
		all = append(all, lists[i][0])
		if lists[i] = lists[i][1:]; len(lists[i]) == 0 {
			lists = append(lists[:i], lists[i+1:]...)
		}
	}
	return all
}

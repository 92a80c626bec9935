package mount_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/retain"
)

// metadataOfOne is a .metadata of torch.distributed.checkpoint of a save by one rank, of
// one byte.
const metadataOfOne = "\x80\x02ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}(" +
	"\x8c\x13state_dict_metadata}(\x8c\x01actorch.distributed.checkpoint.metadata\nBytesStorageMetadata\n)\x81}(ubu" +
	"\x8c\x0cstorage_data}(ctorch.distributed.checkpoint.metadata\nMetadataIndex\n)\x81}(\x8c\x03fqn\x8c\x01a\x8c\x06offsetNub" +
	"ctorch.distributed.checkpoint.metadata\n_StorageInfo\n)\x81}(\x8c\x0drelative_path\x8c\x0c__0_0.distcp\x8c\x06offsetK\x00\x8c\x06lengthK\x01ubu" +
	"ub."

// TestSavedOverByFewerRanks: when a save by one rank over one of two is complete, the old
// one is retained whole.
func TestSavedOverByFewerRanks(t *testing.T) {
	m, dir := mountLocal(t)
	p := newProcess(t)
	p.do(call{Op: "mkdir", Path: m.path("dcp"), Mode: 0o755})
	for _, name := range []string{"__0_0.distcp", "__1_0.distcp", ".metadata"} {
		b, err := os.ReadFile(filepath.Join("../torchfile/testdata/dcp-300", name))
		if err != nil {
			t.Fatal(err)
		}
		p.put(m.path("dcp/"+name), string(b))
	}
	p.put(m.path("dcp/__0_0.distcp"), "x")
	p.put(m.path("dcp/.metadata"), metadataOfOne)
	kept, err := retain.List(t.Context(), localStore(t, dir))
	if err != nil || len(kept) != 1 || len(kept[0].Files) != 3 || kept[0].Former != "dcp" {
		t.Errorf("retained are %+v, %v", kept, err)
	}
	if p.exists(m.path("dcp/__1_0.distcp")) {
		t.Error("a file of the old checkpoint is in the new one")
	}
	if log := m.logged(); log != "" {
		t.Errorf("logged is %s", log)
	}
}

// TestTheFirstSaveOfAllIsGoneOnFrom: a task that saves by TensorFlow is killed before it writes the
// first `checkpoint`, whether it has written the index under its name or moved it there.
func TestTheFirstSaveOfAllIsGoneOnFrom(t *testing.T) {
	for _, moved := range []bool{false, true} {
		m, dir := mountLocal(t)
		p := newProcess(t)
		for _, suffix := range []string{".data-00000-of-00001", ".index"} {
			b, err := os.ReadFile("../tfbundle/testdata/dtypes.ckpt-7" + suffix)
			if err != nil {
				t.Fatal(err)
			}
			name := m.path("dtypes.ckpt-7" + suffix)
			if moved {
				p.put(name+".tempstate1", string(b))
				p.do(call{Op: "rename", Path: name + ".tempstate1", To: name})
			} else {
				p.put(name, string(b))
			}
		}
		if _, err := hdfsckpt.Repair(t.Context(), localStore(t, dir), 0); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "checkpoint")); err != nil || !strings.Contains(string(text), `"dtypes.ckpt-7"`) {
			t.Errorf("the file checkpoint, after an index that was moved (%v): %q, %v", moved, text, err)
		}
	}
}

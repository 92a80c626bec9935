package tfbundle_test

import (
	"fmt"
	"testing"

	"holdfast/hdfsckpt/tfbundle"
	"holdfast/test/bound"
)

func TestParseState(t *testing.T) {
	// As TensorFlow 2.21 writes it.
	st, err := tfbundle.ParseState([]byte("model_checkpoint_path: \"/a b/\\303\\244\\\"-24\"\nall_model_checkpoint_paths: \"model.ckpt-0\"\nall_model_checkpoint_paths: \"/a b/\\303\\244\\\"-24\"\nall_model_checkpoint_timestamps: 1.5\nlast_preserved_timestamp: 1.25\n"))
	if err != nil || st.Current != "/a b/ä\"-24" || fmt.Sprint(st.All) != "[model.ckpt-0 /a b/ä\"-24]" {
		t.Errorf("%+v, %v", st, err)
	}
	again, err := tfbundle.ParseState(st.Bytes())
	if err != nil || fmt.Sprint(again) != fmt.Sprint(st) {
		t.Errorf("%+v, %v", again, err)
	}
	for _, text := range []string{"", "model_checkpoint_path: ", "model_checkpoint_path: \"a", "model_checkpoint_path: \"a\\", "model_checkpoint_path: \"\\x\"", "\x00\x01", "all_model_checkpoint_paths: \"a\"\n"} {
		if st, err := tfbundle.ParseState([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, st)
		}
	}
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte("model_checkpoint_path: \"a\\303\\n\\x41\"\nall_model_checkpoint_paths: 'b'\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		end := bound.Memory(t, len(text), 100)
		st, err := tfbundle.ParseState(text)
		end()
		if err != nil {
			return
		}
		again, err := tfbundle.ParseState(st.Bytes())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(st) {
			t.Errorf("%q becomes %+v, then %+v, %v", text, st, again, err)
		}
	})
}

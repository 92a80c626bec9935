package hdfsckpt

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// Committed is the file that makes a plain checkpoint complete. If it is JSON
// with a number "shards", as many other files must be there.
const Committed = "COMMITTED"

const plainPrefix = "step-"

func isPlainName(name string) bool {
	return strings.HasPrefix(name, plainPrefix) && stepOf(name) != NoStep
}

// plain looks at a directory step-N.
func (l *lister) plain(dir string) error {
	return l.limited(func() error {
		entries, err := l.s.List(l.ctx, dir)
		if vanished(err) {
			return nil
		}
		if err != nil {
			return err
		}
		c := Checkpoint{Name: dir, Kind: Plain, Step: stepOf(dir), State: Torn}
		committed := false
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			c.Files = append(c.Files, fileOf(dir, e))
			switch {
			case e.Name == Committed:
				committed = true
			case !strings.HasSuffix(e.Name, ".tmp"):
				c.Shards++
			}
		}
		if len(c.Files) == 0 {
			return nil // only a directory
		}
		if !committed {
			c.Why = "it has no file " + Committed + ": the save did not get that far"
			l.add(c)
			return nil
		}
		text, err := ReadFile(l.ctx, l.s, path.Join(dir, Committed))
		if vanished(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if n := markedShards(text); n > c.Shards {
			c.Why = fmt.Sprintf("it has %d shards, %s says %d", c.Shards, Committed, n)
		} else {
			c.State = Complete
		}
		l.add(c)
		return nil
	})
}

// markedShards is how many shards the marker says there are; 0 if it says
// nothing: whatever else is in it, it is there.
func markedShards(text []byte) int {
	var marker struct {
		Shards int `json:"shards"`
	}
	_ = json.Unmarshal(text, &marker)
	return marker.Shards
}

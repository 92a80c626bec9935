package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast/client"
)

// ReadDraft reads a job from a YAML file. Relative paths in it are relative to
// the directory of the file. The README has the reference of its keys.
func ReadDraft(name string) (*Draft, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, client.Usagef("there is no job file %s: -f names a YAML file that describes the job", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the job file: %w", err)
	}
	d, err := ParseDraft(text, filepath.Dir(name))
	if err != nil {
		return nil, client.Usagef("the job file %s: %w", name, err)
	}
	return d, nil
}

// ParseDraft reads a job from YAML whose relative paths are relative to dir.
func ParseDraft(text []byte, dir string) (*Draft, error) {
	d := &Draft{}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if document.Kind == 0 {
		return d, nil // empty
	}
	return d, mapping(document.Content[0], "the file", map[string]func(*yaml.Node) error{
		"name":      text1(&d.Name),
		"queue":     text1(&d.Queue),
		"framework": text1(&d.Framework),
		"command":   command(&d.Command),
		"tf1":       boolean(&d.TF1),
		"local":     boolean(&d.Local),
		"progress":  text1(&d.Progress),
		"principal": text1(&d.Principal),

		"view-acl":   text1(&d.ViewACL),
		"modify-acl": text1(&d.ModifyACL),
		"keytab": func(n *yaml.Node) error {
			err := text1(&d.Keytab)(n)
			if d.Keytab != "" && !filepath.IsAbs(d.Keytab) {
				d.Keytab = filepath.Join(dir, d.Keytab)
			}
			return err
		},
		"restarts":    number(&d.Restarts),
		"spares":      number(&d.Spares),
		"start-limit": duration(&d.StartLimit),

		"restart-stalled": givenDuration(&d.RestartStalled),
		"stop-grace":      givenDuration(&d.StopGrace),

		"keep-interpreter-waits": boolean(&d.KeepInterpreterWaits),
		"no-warm":                boolean(&d.Cold),

		"roles": func(n *yaml.Node) error {
			return pairs(n, "roles", func(name string, v *yaml.Node) error { return readRole(d.Role(name), v) })
		},
		"env": func(n *yaml.Node) error {
			d.Env = map[string]string{}
			return pairs(n, "env", func(name string, v *yaml.Node) error {
				var s string
				err := text1(&s)(v)
				d.Env[name] = s
				return err
			})
		},
		"checkpoints": func(n *yaml.Node) error {
			return pairs(n, "checkpoints", func(p string, v *yaml.Node) error {
				c := DraftCheckpoint{Path: p}
				if err := readCheckpoint(&c, v); err != nil {
					return err
				}
				if !strings.Contains(c.URI, "://") && c.URI != "" && !filepath.IsAbs(c.URI) {
					c.URI = filepath.Join(dir, c.URI)
				}
				d.SetCheckpoint(c)
				return nil
			})
		},
		"files":    inputs(d, dir, false),
		"archives": inputs(d, dir, true),
	})
}

// readCheckpoint reads what stands beside a path: a URI, or a mapping.
func readCheckpoint(c *DraftCheckpoint, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return text1(&c.URI)(n)
	}
	set := func(key string) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			var s string
			if err := text1(&s)(n); err != nil {
				return err
			}
			if err := c.Set(key, s); err != nil {
				return at(n, "%v", err)
			}
			return nil
		}
	}
	return mapping(n, "the checkpoint directory "+c.Path, map[string]func(*yaml.Node) error{
		"uri": text1(&c.URI), "format": set("format"), "marker": set("marker"), "quiet": set("quiet"), "share": set("share"),
	})
}

// readRole reads a role: a count, or a mapping.
func readRole(r *DraftRole, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return number(&r.Count)(n)
	}
	return mapping(n, "the role "+r.Name, map[string]func(*yaml.Node) error{
		"count":   number(&r.Count),
		"vcores":  number(&r.VCores),
		"gpus":    number(&r.GPUs),
		"command": command(&r.Command),
		"min":     number(&r.Min),
		"finish":  givenDuration(&r.Finish),

		"memory":     megabytes("memory", &r.MemoryMB),
		"memory-max": megabytes("memory-max", &r.MemoryMaxMB),
	})
}

func megabytes(key string, to *int64) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		mb, err := ParseMemory(n.Value)
		if err != nil || n.Kind != yaml.ScalarNode {
			return at(n, "%s is %q: write 512m, 2g or 1.5g", key, n.Value)
		}
		*to = mb
		return nil
	}
}

func duration(to *time.Duration) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		d, err := time.ParseDuration(n.Value)
		if err != nil || n.Kind != yaml.ScalarNode {
			return at(n, "%q is not a length of time: write 90s, 10m or 2h", n.Value)
		}
		*to = d
		return nil
	}
}

// givenDuration is duration for what differs between 0 and not being given.
func givenDuration(to **time.Duration) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		*to = new(time.Duration)
		return duration(*to)(n)
	}
}

func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// pairs calls f for each key of a mapping, in the file's order.
func pairs(n *yaml.Node, what string, f func(key string, v *yaml.Node) error) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return at(n, "%s must be a mapping of names to values (NAME: VALUE)", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return at(key, "%q stands twice in %s", key.Value, what)
		}
		seen[key.Value] = true
		if err := f(key.Value, resolve(n.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

// mapping reads a mapping whose keys are known.
func mapping(n *yaml.Node, what string, keys map[string]func(*yaml.Node) error) error {
	return pairs(n, what, func(key string, v *yaml.Node) error {
		read, ok := keys[key]
		if !ok {
			known := slices.Sorted(maps.Keys(keys))
			return at(v, "%q is not known in %s: there are %s%s", key, what, strings.Join(known, ", "), client.DidYouMean(key, known))
		}
		return read(v)
	})
}

func text1(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return at(n, "a single value is wanted here, not a list or a mapping")
		}
		if n.Tag == "!!null" {
			*to = ""
			return nil
		}
		*to = n.Value
		return nil
	}
}

func boolean(to *bool) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := n.Decode(to); err != nil {
			return at(n, "%q is neither true nor false", n.Value)
		}
		return nil
	}
}

func number(to **int) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		v, err := strconv.Atoi(n.Value)
		if err != nil || n.Kind != yaml.ScalarNode {
			return at(n, "%q is not a whole number", n.Value)
		}
		*to = &v
		return nil
	}
}

// command is a list of words, or one text for the shell.
func command(to *[]string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind == yaml.ScalarNode {
			*to = []string{"/bin/sh", "-c", n.Value}
			return nil
		}
		return words(n, "command", func(w string) error {
			*to = append(*to, w)
			return nil
		})
	}
}

// words calls f for each text of a list.
func words(n *yaml.Node, what string, f func(string) error) error {
	if n.Kind != yaml.SequenceNode {
		return at(n, "%s must be a list", what)
	}
	for _, item := range n.Content {
		var s string
		if err := text1(&s)(resolve(item)); err != nil {
			return err
		}
		if err := f(s); err != nil {
			return at(item, "%v", err)
		}
	}
	return nil
}

func inputs(d *Draft, dir string, archive bool) func(*yaml.Node) error {
	what := "files"
	if archive {
		what = "archives"
	}
	return func(n *yaml.Node) error {
		return words(n, what, func(s string) error {
			in, err := ParseInput(s, dir, archive)
			if err == nil {
				d.AddInput(in)
			}
			return err
		})
	}
}

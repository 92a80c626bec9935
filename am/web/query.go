package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"holdfast/am/web/drawing"
	"holdfast/proto"
)

// parameters are those of an address or of a form. What is given and is not as it has to be is in
// err, so that nothing else is taken in its place.
type parameters struct {
	url.Values
	err error // a badParameter; nil: all that was read is as it has to be
}

// parametersOf returns those of a request's address.
func parametersOf(r *http.Request) *parameters { return parseParameters(r.URL.RawQuery) }

// parseParameters returns parameters that are encoded as in an address.
func parseParameters(text string) *parameters {
	p := &parameters{}
	var err error
	if p.Values, err = url.ParseQuery(text); err != nil {
		p.err = badParameter{"the parameters cannot be read: " + err.Error()}
	}
	return p
}

// badParameter says what is wrong with a parameter.
type badParameter struct{ text string }

func (b badParameter) Error() string { return b.text }

// number returns a parameter that is a number of at least so many; other without it.
func (p *parameters) number(name string, other, least int) int {
	text := p.Get(name)
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		p.bad(name, fmt.Sprintf("a number of at least %d", least))
		return other
	}
	return n
}

// bad notes that a parameter is not what it has to be.
func (p *parameters) bad(name, want string) {
	if p.err == nil {
		p.err = badParameter{fmt.Sprintf("%s=%s: write %s", name, p.Get(name), want)}
	}
}

// taskQuery selects and orders tasks, by the parameters of the page's address: it works
// without the script, and a page's address can be passed on.
type taskQuery struct {
	Text  string // in the name, the node or the reason
	State string // word
	Role  string
	Sort  string       // key of an order; "": problems first
	Down  bool         // in descending order
	Part  drawing.Part // of the timeline
}

// orders are the columns by which tasks can be ordered.
var orders = []struct {
	key, title string
	compare    func(a, b *proto.TaskStatus) int
	has        func(*proto.TaskStatus) bool // the column is shown if any task has it; nil: always
}{
	{"task", "Task", compareTasks, nil},
	{"state", "State", func(a, b *proto.TaskStatus) int { return cmp.Compare(a.State, b.State) }, nil},
	{"attempt", "Attempt", func(a, b *proto.TaskStatus) int { return cmp.Compare(a.Attempt, b.Attempt) }, nil},
	{"node", "Node", func(a, b *proto.TaskStatus) int { return cmp.Compare(a.Node, b.Node) }, nil},
	{"step", "Step", func(a, b *proto.TaskStatus) int { return cmp.Compare(a.Step, b.Step) }, nil},
	{"cpu", "CPU", func(a, b *proto.TaskStatus) int { return cmp.Compare(a.CpuCores, b.CpuCores) }, nil},
	{"memory", "Memory", func(a, b *proto.TaskStatus) int { return cmp.Compare(a.RssBytes, b.RssBytes) }, nil},
	{"network", "Network", func(a, b *proto.TaskStatus) int {
		return cmp.Compare(a.SentBytesPerSecond+a.ReceivedBytesPerSecond, b.SentBytesPerSecond+b.ReceivedBytesPerSecond)
	}, (*proto.TaskStatus).HasTraffic},
	{"gpu", "GPU", func(a, b *proto.TaskStatus) int { return cmp.Compare(a.GpuPercent, b.GpuPercent) }, (*proto.TaskStatus).HasGPUUse},
}

// compareTasks orders worker-2 before worker-10.
func compareTasks(a, b *proto.TaskStatus) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Task, b.Task))
}

func parseTaskQuery(p url.Values) taskQuery {
	q := taskQuery{Text: p.Get("q"), State: p.Get("state"), Role: p.Get("role"), Part: drawing.ParsePart(p)}
	q.Sort, q.Down = strings.CutPrefix(p.Get("sort"), "-")
	return q
}

// Any reports whether the query leaves tasks out.
func (q taskQuery) Any() bool { return q.Text != "" || q.State != "" || q.Role != "" }

// SortKey is the parameter of the order.
func (q taskQuery) SortKey() string {
	if q.Down {
		return "-" + q.Sort
	}
	return q.Sort
}

// apply returns the tasks that the query selects, in its order.
func (q taskQuery) apply(tasks []*proto.TaskStatus) []*proto.TaskStatus {
	text := strings.ToLower(q.Text)
	list := slices.DeleteFunc(slices.Clone(tasks), func(t *proto.TaskStatus) bool {
		return q.Role != "" && t.Role != q.Role || q.State != "" && proto.StateWord(t.State) != q.State ||
			text != "" && !strings.Contains(strings.ToLower(t.Task), text) && !strings.Contains(strings.ToLower(t.Node), text) && !strings.Contains(strings.ToLower(t.Why), text)
	})
	for _, o := range orders {
		if o.key == q.Sort {
			slices.SortStableFunc(list, func(a, b *proto.TaskStatus) int {
				if q.Down {
					return o.compare(b, a)
				}
				return o.compare(a, b)
			})
			return list
		}
	}
	slices.SortStableFunc(list, func(a, b *proto.TaskStatus) int { return proto.Urgency(a) - proto.Urgency(b) })
	return list
}

// column is a column's head, with the address that orders by it.
type column struct {
	Key, Title, Address, Order string // Order is ascending, descending or ""
}

// columns returns the columns of the table of these tasks.
func (q taskQuery) columns(tasks []*proto.TaskStatus) []column {
	var list []column
	for _, o := range orders {
		if o.has != nil && !slices.ContainsFunc(tasks, o.has) {
			continue
		}
		c := column{Key: o.key, Title: o.title}
		next := q
		next.Sort, next.Down = o.key, o.key == "cpu" || o.key == "memory" || o.key == "step" || o.key == "attempt" || o.has != nil
		if q.Sort == o.key {
			next.Down = !q.Down
			c.Order = "ascending"
			if q.Down {
				c.Order = "descending"
			}
		}
		c.Address = next.address() + "#tasks"
		list = append(list, c)
	}
	return list
}

// address returns the page's address with the query.
func (q taskQuery) address() string {
	p := q.Part.Values()
	for key, value := range map[string]string{"q": q.Text, "state": q.State, "role": q.Role, "sort": q.SortKey()} {
		if value != "" {
			p.Set(key, value)
		}
	}
	return "?" + p.Encode()
}

// PartAddress returns the page's address with another part of the job's life.
func (q taskQuery) PartAddress(part drawing.Part) string {
	q.Part = part
	return q.address() + "#timeline"
}

// parts lead to other parts of the job's life than the one that is shown.
type parts struct {
	Links      []partLink
	Shown      string     // what is shown, where that is between two moments
	From, To   string     // as fields of browsers have them; "" for all of the job's life
	Parameters []variable // of the address, besides
}

type partLink struct {
	Title, Address string
	Current        bool
}

// newParts returns what leads from an axis to other parts of the job's life, of which address
// returns the addresses.
func newParts(a *drawing.Axis, address func(drawing.Part) string) *parts {
	v := &parts{Shown: a.Shown(), From: a.Part.FromField(), To: a.Part.ToField()}
	for _, l := range a.Links {
		v.Links = append(v.Links, partLink{l.Title, address(l.Part), l.Current})
	}
	_, query, _ := strings.Cut(address(drawing.Part{}), "?")
	query, _, _ = strings.Cut(query, "#")
	others, _ := url.ParseQuery(query) // it was encoded
	for _, name := range slices.Sorted(maps.Keys(others)) {
		for _, value := range others[name] {
			v.Parameters = append(v.Parameters, variable{name, value})
		}
	}
	return v
}

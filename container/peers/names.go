package peers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/container/failure"
	"holdfast/container/sandbox"
)

// Names makes the names of a task's peers resolvable for it.
type Names struct {
	peers *Peers
	file  string // our hosts file, bound over the task's; empty without a namespace
	own   string // the task, if it cannot listen on its virtual address
	at    string // then its real one
	host  string // the machine's own hosts file
	node  nodeName
}

// NewNames returns the names of a task's peers, which stand for virtual addresses. host is
// the address or name by which peers reach the task's node, and master the application
// master's address, host:port. With ownAddress, the task cannot listen on its virtual
// address, and its own name stands for host.
func NewNames(p *Peers, host, master string, ownAddress bool) *Names {
	n := &Names{peers: p, node: newNodeName(host, master)}
	if ownAddress {
		n.own, n.at = p.tasks[p.own].Name, host
	}
	return n
}

// Bind gives the task a hosts file of its own, made in dir. If this node does not allow
// that, it returns the reason as unavailable, and Substitute must be used.
func (n *Names) Bind(dir string, box *sandbox.Box) (unavailable, err error) {
	const hosts = "/etc/hosts"
	b, err := os.ReadFile(hosts)
	if err != nil {
		return err, nil
	}
	n.host = string(b)
	if !n.node.mapsToLoopback(n.host) {
		n.node = nodeName{}
	}
	if err := box.Restrictions().Namespace; err != nil {
		return err, nil
	}
	n.file = filepath.Join(dir, "hosts")
	if err := os.WriteFile(n.file, []byte(n.content(n.addresses())), 0o644); err != nil {
		return nil, failure.Node(fmt.Errorf("writing the task's hosts file: %w", err))
	}
	if err := box.Bind(n.file, hosts); err != nil {
		return nil, failure.Node(fmt.Errorf("giving the task its own hosts file: %w", err))
	}
	return nil, bindResolver(dir, box)
}

// content makes the hosts file: a line for each peer, then the machine's own
// entries without those that would contradict. Peers that have no address are
// left out.
func (n *Names) content(address map[string]string) string {
	var b strings.Builder
	for _, t := range n.peers.tasks {
		if a := address[t.Name]; a != "" {
			b.WriteString(a + " " + t.Name + "\n")
		}
	}
	ours := func(name string) bool { _, ok := n.peers.index[name]; return ok }
	known := n.node.address == ""
	for line := range strings.Lines(n.host) {
		at, names := hostsEntry(line)
		names = slices.DeleteFunc(names, ours)
		if len(names) == 0 {
			continue
		}
		known = known || slices.Contains(names, n.node.names[0])
		for _, e := range n.node.entries(at, names) {
			b.WriteString(e + "\n")
		}
	}
	if !known {
		b.WriteString(entry(n.node.address, n.node.names) + "\n")
	}
	return b.String()
}

// Interface returns the network interface that the task's programs must be given, since
// the node's own name would lead them to loopback; empty: they find it.
func (n *Names) Interface() string {
	if n.file != "" || n.node.address == "" {
		return ""
	}
	return networkInterface(n.node.address)
}

// addresses returns the virtual addresses by name, and the real one of the task itself
// where it cannot listen on its virtual address.
func (n *Names) addresses() map[string]string {
	m := make(map[string]string, len(n.peers.tasks))
	for i, t := range n.peers.tasks {
		m[t.Name] = n.peers.virtual[i].String()
	}
	if n.own != "" {
		m[n.own] = numeric(n.at)
	}
	return m
}

// Addresses returns the addresses of names that the task cannot resolve; nil if it can
// resolve all.
func (n *Names) Addresses() map[string]string {
	if n.file != "" {
		return nil
	}
	return n.addresses()
}

// named is NAME:PORT, as it may stand in a word. RE2 has no look-behind, so the
// character before belongs to the match.
var named = regexp.MustCompile(`(^|[^A-Za-z0-9_.-])([a-z][a-z0-9_-]*):([0-9]+)`)

// Substitute replaces names by addresses in words of the form NAME:PORT in the command and
// environment of a task that has no hosts file of its own.
func (n *Names) Substitute(command []string, env map[string]string) ([]string, map[string]string) {
	whole := n.Addresses()
	if whole == nil {
		return command, env
	}
	replace := func(text string) string {
		return named.ReplaceAllStringFunc(text, func(m string) string {
			g := named.FindStringSubmatch(m)
			name, port := g[2], g[3]
			address := whole[name]
			if address == "" {
				return m
			}
			return g[1] + net.JoinHostPort(address, port)
		})
	}
	words := make([]string, len(command))
	for i, c := range command {
		words[i] = replace(c)
	}
	variables := map[string]string{}
	for k, v := range env {
		variables[k] = replace(v)
		// MASTER_ADDR and the like hold a bare name.
		if a, ok := whole[v]; ok && strings.HasSuffix(k, "ADDR") {
			variables[k] = a
		}
	}
	return words, variables
}

// numeric resolves a host's name; one that does not resolve is left out.
func numeric(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return ""
	}
	return found[0].String()
}

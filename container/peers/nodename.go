package peers

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// nodeName is what the node's own names stand for in a task's hosts file. Programs
// that listen on the address of gethostname and tell it to their peers, as gloo and
// TensorPipe do, must not find there the 127.0.1.1 that Debian's installer writes.
type nodeName struct {
	names   []string // the node's host name, and that by which peers reach it
	address string   // by which peers reach it; empty: the names stay as they are
}

// newNodeName finds the address of a node whose peers reach it by host, an address or
// a name, and that reaches the application master at master, host:port. A node that
// is reached by loopback is all that its job has, and its names may stay.
func newNodeName(host, master string) nodeName {
	if isLoopback(host) || isLocalhost(host) {
		return nodeName{}
	}
	own, err := os.Hostname()
	if err != nil {
		return nodeName{}
	}
	n := nodeName{names: []string{own}}
	if _, err := netip.ParseAddr(host); err != nil && host != own {
		n.names = append(n.names, host)
	}
	// The last is in a block for documentation: only which address it would be left by
	// is asked, and nothing is sent.
	for _, address := range []string{numeric(host), sourceAddress(master), sourceAddress("192.0.2.1:9")} {
		if a, err := netip.ParseAddr(address); err == nil && !a.IsLoopback() && !a.IsUnspecified() {
			n.address = address
			break
		}
	}
	return n
}

// sourceAddress returns the address from which this host reaches another; empty if it does
// not.
func sourceAddress(hostPort string) string {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	c, err := dialer.Dial("udp", hostPort)
	if err != nil {
		return ""
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).IP.String()
}

// mapsToLoopback reports whether programs that ask for the node's own host name get a
// loopback address, or none. hosts is the machine's hosts file.
func (n nodeName) mapsToLoopback(hosts string) bool {
	if n.address == "" {
		return false
	}
	for line := range strings.Lines(hosts) {
		address, names := hostsEntry(line)
		if slices.Contains(names, n.names[0]) {
			return isLoopback(address)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupIP(ctx, "ip", n.names[0])
	return err != nil || !slices.ContainsFunc(found, func(ip net.IP) bool { return !ip.IsLoopback() })
}

// entries returns the lines of a hosts file in place of one of the machine's: names of
// the node beside a loopback address are moved to the node's own.
func (n nodeName) entries(address string, names []string) []string {
	isOwn := func(name string) bool { return slices.Contains(n.names, name) }
	if n.address == "" || !isLoopback(address) || !slices.ContainsFunc(names, isOwn) {
		return []string{entry(address, names)}
	}
	var local, moved []string
	for _, name := range names {
		if isLocalhost(name) {
			local = append(local, name)
		} else {
			moved = append(moved, name)
		}
	}
	lines := []string{entry(n.address, moved)}
	if len(local) > 0 {
		lines = append(lines, entry(address, local))
	}
	return lines
}

// networkInterface returns the name of the interface that has an address; empty if none
// has.
func networkInterface(address string) string {
	wanted := net.ParseIP(address)
	all, err := net.Interfaces()
	if err != nil || wanted == nil {
		return ""
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if ipNet, ok := a.(*net.IPNet); ok && ipNet.IP.Equal(wanted) {
				return i.Name
			}
		}
	}
	return ""
}

// hostsEntry splits a line of a hosts file; without names it says nothing.
func hostsEntry(line string) (address string, names []string) {
	text, _, _ := strings.Cut(line, "#")
	f := strings.Fields(text)
	if len(f) < 2 {
		return "", nil
	}
	return f[0], f[1:]
}

func entry(address string, names []string) string { return address + " " + strings.Join(names, " ") }

// isLocalhost reports whether a name is the loopback address's own.
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasPrefix(name, "localhost.") || strings.HasPrefix(name, "ip6-")
}

func isLoopback(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.IsLoopback()
}

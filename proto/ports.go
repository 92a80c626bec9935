package proto

// Tasks listen on ports between LowestPort and EphemeralPorts, where those begin that Linux
// gives to outgoing connections, unless it is told otherwise (net.ipv4.ip_local_port_range).
const (
	LowestPort     = 10000
	EphemeralPorts = 32768
)

// PortAfter is the n-th port after another of those of tasks. After the last comes the first.
func PortAfter(port, n int) int {
	const count = EphemeralPorts - LowestPort
	return LowestPort + ((port-LowestPort+n)%count+count)%count
}

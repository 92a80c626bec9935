package yarn

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	wire "holdfast/internal/hadoop/wire/yarn"
)

// ApplicationID names an application: application_CLUSTERTIMESTAMP_NUMBER.
type ApplicationID struct {
	Cluster int64 // the RM's start, in ms
	Number  int32
}

// AttemptID names a run of an application's master.
type AttemptID struct {
	Application ApplicationID
	Number      int32
}

// ContainerID names a container. Number holds the RM's epoch above bit 40
// (org.apache.hadoop.yarn.api.records.ContainerId).
type ContainerID struct {
	Attempt AttemptID
	Number  int64
}

// ReservationID names a reservation of the ReservationSystem: reservation_TIMESTAMP_NUMBER.
type ReservationID struct {
	Timestamp int64 // the RM's start, in ms
	Number    int64
}

// NodeID is a NodeManager's address, under which the scheduler knows it.
type NodeID struct {
	Host string
	Port int32
}

const containerBits = 40

// String returns YARN's usual form.
func (a ApplicationID) String() string {
	return fmt.Sprintf("application_%d_%04d", a.Cluster, a.Number)
}

// String returns YARN's usual form.
func (c ContainerID) String() string {
	a := c.Attempt.Application
	epoch, number := c.Number>>containerBits, c.Number&(1<<containerBits-1)
	if epoch > 0 {
		return fmt.Sprintf("container_e%02d_%d_%04d_%02d_%06d", epoch, a.Cluster, a.Number, c.Attempt.Number, number)
	}
	return fmt.Sprintf("container_%d_%04d_%02d_%06d", a.Cluster, a.Number, c.Attempt.Number, number)
}

// String returns HOST:PORT.
func (n NodeID) String() string { return net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) }

// ParseApplicationID reads application_T_N.
func ParseApplicationID(s string) (ApplicationID, error) {
	parts := strings.Split(s, "_")
	if len(parts) == 3 && parts[0] == "application" {
		cluster, err1 := parseNumber(parts[1], 63)
		number, err2 := parseNumber(parts[2], 31)
		if err1 == nil && err2 == nil {
			return ApplicationID{Cluster: cluster, Number: int32(number)}, nil
		}
	}
	return ApplicationID{}, fmt.Errorf("%q is not an application's id: that would look like application_1700000000000_0001", s)
}

// ParseReservationID reads reservation_T_N.
func ParseReservationID(s string) (ReservationID, error) {
	parts := strings.Split(s, "_")
	if len(parts) == 3 && parts[0] == "reservation" {
		timestamp, err1 := parseNumber(parts[1], 63)
		number, err2 := parseNumber(parts[2], 63)
		if err1 == nil && err2 == nil {
			return ReservationID{Timestamp: timestamp, Number: number}, nil
		}
	}
	return ReservationID{}, fmt.Errorf("%q is not a reservation's id: that would look like reservation_1700000000000_0001", s)
}

// ParseContainerID reads container_T_A_N_C and container_eE_T_A_N_C.
func ParseContainerID(s string) (ContainerID, error) {
	bad := fmt.Errorf("%q is not a container's id: that would look like container_1700000000000_0001_01_000001", s)
	parts := strings.Split(s, "_")
	var epoch int64
	if len(parts) == 6 && strings.HasPrefix(parts[1], "e") {
		e, err := parseNumber(parts[1][1:], 63-containerBits)
		if err != nil {
			return ContainerID{}, bad
		}
		epoch, parts = e, append(parts[:1:1], parts[2:]...)
	}
	if len(parts) != 5 || parts[0] != "container" {
		return ContainerID{}, bad
	}
	var n [4]int64
	for i, bits := range []int{63, 31, 31, containerBits} {
		v, err := parseNumber(parts[i+1], bits)
		if err != nil {
			return ContainerID{}, bad
		}
		n[i] = v
	}
	return ContainerID{
		Attempt: AttemptID{Application: ApplicationID{Cluster: n[0], Number: int32(n[1])}, Number: int32(n[2])},
		Number:  epoch<<containerBits | n[3],
	}, nil
}

// parseNumber reads a number of at most so many bits, without a sign.
func parseNumber(s string, bits int) (int64, error) {
	v, err := strconv.ParseUint(s, 10, bits)
	return int64(v), err
}

func (a ApplicationID) proto() *wire.ApplicationIdProto {
	return &wire.ApplicationIdProto{Id: &a.Number, ClusterTimestamp: &a.Cluster}
}

func (c ContainerID) proto() *wire.ContainerIdProto {
	return &wire.ContainerIdProto{
		AppId:        c.Attempt.Application.proto(),
		AppAttemptId: &wire.ApplicationAttemptIdProto{ApplicationId: c.Attempt.Application.proto(), AttemptId: &c.Attempt.Number},
		Id:           &c.Number,
	}
}

func applicationID(p *wire.ApplicationIdProto) ApplicationID {
	return ApplicationID{Cluster: p.GetClusterTimestamp(), Number: p.GetId()}
}

func containerID(p *wire.ContainerIdProto) ContainerID {
	a := p.GetAppAttemptId()
	app := a.GetApplicationId()
	if app == nil {
		app = p.GetAppId()
	}
	return ContainerID{
		Attempt: AttemptID{Application: applicationID(app), Number: a.GetAttemptId()},
		Number:  p.GetId(),
	}
}

func containerIDs(ids []ContainerID) []*wire.ContainerIdProto {
	list := make([]*wire.ContainerIdProto, 0, len(ids))
	for _, id := range ids {
		list = append(list, id.proto())
	}
	return list
}

func nodeID(p *wire.NodeIdProto) NodeID { return NodeID{Host: p.GetHost(), Port: p.GetPort()} }

package testbed

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const vethInfoPeer = 1 // VETH_INFO_PEER, linux/veth.h

func u32(v int) []byte { return nl.Uint32Attr(uint32(v)) }

func createRequest(kind int) *nl.NetlinkRequest {
	return nl.NewNetlinkRequest(kind, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
}

// vethRequest creates a veth pair in one request: a in the namespace of the
// socket, b in the one of the descriptor. One queue each: the wire side's
// receive steering works per queue, and every queue costs a sysfs directory.
func vethRequest(a, b device, peerNS, mtu int) *nl.NetlinkRequest {
	req := createRequest(unix.RTM_NEWLINK)
	addDevice(req.AddData, a, mtu)
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, []byte("veth"))
	peer := info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddRtAttr(vethInfoPeer, nil)
	addDevice(peer.AddChild, b, mtu)
	peer.AddRtAttr(unix.IFLA_NET_NS_FD, u32(peerNS))
	req.AddData(info)
	return req
}

// addDevice adds an interface message and its attributes to a request or, for
// the peer of a veth, to an attribute.
func addDevice(add func(nl.NetlinkRequestData), d device, mtu int) {
	add(infoMessage(d.index, 0))
	add(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(d.name)))
	add(nl.NewRtAttr(unix.IFLA_ADDRESS, d.mac))
	add(nl.NewRtAttr(unix.IFLA_MTU, u32(mtu)))
	add(nl.NewRtAttr(unix.IFLA_NUM_TX_QUEUES, u32(1)))
	add(nl.NewRtAttr(unix.IFLA_NUM_RX_QUEUES, u32(1)))
}

// upRequest brings a device up and tags it; with a master it becomes a port.
func upRequest(d device, alias string, master int) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, 0)
	req.AddData(infoMessage(d.index, unix.IFF_UP))
	if alias != "" {
		req.AddData(nl.NewRtAttr(unix.IFLA_IFALIAS, []byte(alias)))
	}
	if master != 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_MASTER, u32(master)))
	}
	return req
}

func infoMessage(index int, up uint32) *nl.IfInfomsg {
	m := nl.NewIfInfomsg(unix.AF_UNSPEC)
	m.Index = int32(index)
	m.Flags, m.Change = up, up
	return m
}

// bridgeRequest creates a bridge without spanning tree: topologies are
// checked for loops, and a port that listens first loses packets for 30 s.
// Multicast snooping is off so that all members hear neighbour discovery.
func bridgeRequest(index int) *nl.NetlinkRequest {
	req := createRequest(unix.RTM_NEWLINK)
	req.AddData(infoMessage(index, 0))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(bridgeDevice)))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, []byte("bridge"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_BR_STP_STATE, u32(0))
	data.AddRtAttr(nl.IFLA_BR_FORWARD_DELAY, u32(0))
	data.AddRtAttr(nl.IFLA_BR_MCAST_SNOOPING, nl.Uint8Attr(0))
	req.AddData(info)
	return req
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// addressRequest gives a device an address. For IPv6, dad asks for duplicate
// address detection, which holds the address back for one to two seconds.
func addressRequest(index int, p netip.Prefix, dad bool) *nl.NetlinkRequest {
	req := createRequest(unix.RTM_NEWADDR)
	m := nl.NewIfAddrmsg(int(family(p.Addr())))
	m.Prefixlen = uint8(p.Bits())
	m.Index = uint32(index)
	if p.Addr().Is6() && !dad {
		m.Flags = unix.IFA_F_NODAD
	}
	req.AddData(m)
	req.AddData(nl.NewRtAttr(unix.IFA_LOCAL, p.Addr().AsSlice()))
	req.AddData(nl.NewRtAttr(unix.IFA_ADDRESS, p.Addr().AsSlice()))
	return req
}

// routeRequest adds a route through a neighbour or, without one, an
// unreachable one.
func routeRequest(p netip.Prefix, via netip.Addr, index int) *nl.NetlinkRequest {
	req := createRequest(unix.RTM_NEWROUTE)
	m := &nl.RtMsg{RtMsg: unix.RtMsg{
		Family:   family(p.Addr()),
		Dst_len:  uint8(p.Bits()),
		Table:    unix.RT_TABLE_MAIN,
		Protocol: unix.RTPROT_STATIC,
		Scope:    unix.RT_SCOPE_UNIVERSE,
		Type:     unix.RTN_UNICAST,
	}}
	req.AddData(m)
	if p.Bits() > 0 {
		req.AddData(nl.NewRtAttr(unix.RTA_DST, p.Addr().AsSlice()))
	}
	if !via.IsValid() {
		m.Type = unix.RTN_UNREACHABLE
		return req
	}
	req.AddData(nl.NewRtAttr(unix.RTA_GATEWAY, via.AsSlice()))
	req.AddData(nl.NewRtAttr(unix.RTA_OIF, u32(index)))
	return req
}

// neighbourRequest makes a neighbour known for ever, so that neither ARP nor
// neighbour discovery crosses a link (and waits for its delay, or is lost).
func neighbourRequest(index int, ip netip.Addr, mac []byte) *nl.NetlinkRequest {
	req := createRequest(unix.RTM_NEWNEIGH)
	req.AddData(&neighbourMessage{family: family(ip), index: uint32(index)})
	req.AddData(nl.NewRtAttr(unix.NDA_DST, ip.AsSlice()))
	req.AddData(nl.NewRtAttr(unix.NDA_LLADDR, mac))
	return req
}

// neighbourMessage is struct ndmsg of linux/neighbour.h.
type neighbourMessage struct {
	family uint8
	index  uint32
}

var _ nl.NetlinkRequestData = (*neighbourMessage)(nil)

// Len implements nl.NetlinkRequestData.
func (*neighbourMessage) Len() int { return 12 }

// Serialize implements nl.NetlinkRequestData.
func (m *neighbourMessage) Serialize() []byte {
	b := make([]byte, m.Len())
	b[0] = m.family
	binary.NativeEndian.PutUint32(b[4:], m.index)
	binary.NativeEndian.PutUint16(b[8:], unix.NUD_PERMANENT)
	return b
}

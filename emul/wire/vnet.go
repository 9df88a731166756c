package wire

import "encoding/binary"

// VNetLen is the length in bytes of a virtio network header, which precedes
// every frame of a packet socket with PACKET_VNET_HDR.
const VNetLen = 10

// Flags and segmentation types of the header (VIRTIO 1.2 §5.1.6).
const (
	FlagNeedsChecksum = 1

	GSONone  = 0
	GSOTCPv4 = 1
	GSOTCPv6 = 4
	GSOUDP   = 5 // UDP segmentation offload, one datagram per segment
	GSOECN   = 0x80
)

// VNet is a virtio network header: what the kernel left undone in a frame.
type VNet struct {
	Flags   uint8
	GSOType uint8
	// HeaderLen is a hint and not to be trusted.
	HeaderLen uint16
	GSOSize   uint16 // payload bytes per segment
	// The checksum runs from ChecksumStart to the end and is stored
	// ChecksumOffset bytes after its start.
	ChecksumStart  uint16
	ChecksumOffset uint16
}

// Decode reads the header from the first VNetLen bytes of b.
func (v *VNet) Decode(b []byte) {
	_ = b[VNetLen-1]
	v.Flags, v.GSOType = b[0], b[1]
	v.HeaderLen = binary.LittleEndian.Uint16(b[2:])
	v.GSOSize = binary.LittleEndian.Uint16(b[4:])
	v.ChecksumStart = binary.LittleEndian.Uint16(b[6:])
	v.ChecksumOffset = binary.LittleEndian.Uint16(b[8:])
}

// Encode writes the header to the first VNetLen bytes of b.
func (v *VNet) Encode(b []byte) {
	_ = b[VNetLen-1]
	b[0], b[1] = v.Flags, v.GSOType
	binary.LittleEndian.PutUint16(b[2:], v.HeaderLen)
	binary.LittleEndian.PutUint16(b[4:], v.GSOSize)
	binary.LittleEndian.PutUint16(b[6:], v.ChecksumStart)
	binary.LittleEndian.PutUint16(b[8:], v.ChecksumOffset)
}

// InsertVLAN adds a tag to the frame that begins VLANLen bytes into b, moving
// the two addresses to the start of b, and shifts the header's offsets.
func (v *VNet) InsertVLAN(b []byte, tpid, tci uint16) {
	copy(b, b[VLANLen:VLANLen+12])
	binary.BigEndian.PutUint16(b[12:], tpid)
	binary.BigEndian.PutUint16(b[14:], tci)
	if v.Flags&FlagNeedsChecksum != 0 {
		v.ChecksumStart += VLANLen
	}
	if v.HeaderLen != 0 {
		v.HeaderLen += VLANLen
	}
}

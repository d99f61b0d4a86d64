// Command stores plays TiKV for a PD: it registers stores, reports for them, and moves the peers of a region as PD asks.
//
//	stores LISTEN PD_URL[,PD_URL...]
//
// It is told what to do over HTTP at LISTEN: `/add?address=HOST:PORT&version=8.5.2` answers with the id of a new store.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	callTimeout = 3 * time.Second
	heartbeat   = 300 * time.Millisecond
	capacity    = 100 << 30
)

// tikv is all stores of a cluster, with the one region that they keep.
type tikv struct {
	sync.Mutex
	urls    []string
	cluster uint64
	pd      pdpb.PDClient
	stream  pdpb.PD_RegionHeartbeatClient
	stores  []*metapb.Store
	region  *pdpb.RegionHeartbeatRequest
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: stores LISTEN PD_URL[,PD_URL...]")
	}
	all := &tikv{urls: strings.Split(os.Args[2], ",")}
	http.HandleFunc("/add", all.add)
	go func() {
		for range time.Tick(heartbeat) {
			all.report()
		}
	}()
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}

func (all *tikv) header() *pdpb.RequestHeader { return &pdpb.RequestHeader{ClusterId: all.cluster} }

// connect finds PD's leader.
func (all *tikv) connect(ctx context.Context) error {
	for _, url := range all.urls {
		leader, err := leaderOf(ctx, url)
		if err != nil {
			continue
		}
		connection, err := grpc.NewClient(leader, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		pd := pdpb.NewPDClient(connection)
		found, err := pd.GetMembers(ctx, &pdpb.GetMembersRequest{})
		if err != nil {
			continue
		}
		stream, err := pd.RegionHeartbeat(context.Background())
		if err != nil {
			continue
		}
		all.cluster, all.pd, all.stream = found.Header.ClusterId, pd, stream
		go all.obey(stream)
		return nil
	}
	return errors.New("no PD has a leader")
}

func leaderOf(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/pd/api/v1/leader", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var leader struct {
		URLs []string `json:"client_urls"`
	}
	if err := json.NewDecoder(response.Body).Decode(&leader); err != nil || len(leader.URLs) == 0 {
		return "", fmt.Errorf("%s names no leader", url)
	}
	return strings.TrimPrefix(leader.URLs[0], "http://"), nil
}

func (all *tikv) add(response http.ResponseWriter, request *http.Request) {
	all.Lock()
	defer all.Unlock()
	ctx, cancel := context.WithTimeout(request.Context(), callTimeout)
	defer cancel()
	store, err := all.register(ctx, request.URL.Query().Get("address"), request.URL.Query().Get("version"))
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(response, store.Id)
}

func (all *tikv) register(ctx context.Context, address, version string) (*metapb.Store, error) {
	if err := all.connect(ctx); err != nil {
		return nil, err
	}
	id, err := all.allocate(ctx)
	if err != nil {
		return nil, err
	}
	store := &metapb.Store{
		Id: id, Address: address, StatusAddress: address, Version: version, StartTimestamp: time.Now().Unix(),
		GitHash: "unknown", DeployPath: "/",
	}
	if len(all.stores) == 0 {
		if err := all.bootstrap(ctx, store); err != nil {
			return nil, err
		}
	}
	answer, err := all.pd.PutStore(ctx, &pdpb.PutStoreRequest{Header: all.header(), Store: store})
	if err == nil && answer.Header.Error != nil {
		err = errors.New(answer.Header.Error.Message)
	}
	if err == nil {
		all.stores = append(all.stores, store)
	}
	return store, err
}

func (all *tikv) allocate(ctx context.Context) (uint64, error) {
	answer, err := all.pd.AllocID(ctx, &pdpb.AllocIDRequest{Header: all.header()})
	if err != nil {
		return 0, err
	}
	return answer.Id, nil
}

// bootstrap makes the first region, on the first store.
func (all *tikv) bootstrap(ctx context.Context, store *metapb.Store) error {
	region, err := all.allocate(ctx)
	if err != nil {
		return err
	}
	peer, err := all.allocate(ctx)
	if err != nil {
		return err
	}
	first := &metapb.Region{
		Id:          region,
		RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1},
		Peers:       []*metapb.Peer{{Id: peer, StoreId: store.Id}},
	}
	answer, err := all.pd.Bootstrap(ctx, &pdpb.BootstrapRequest{Header: all.header(), Store: store, Region: first})
	if err != nil {
		return err
	}
	if answer.Header.Error != nil {
		return errors.New(answer.Header.Error.Message)
	}
	all.region = &pdpb.RegionHeartbeatRequest{
		Region: first, Leader: first.Peers[0], Term: 5, ApproximateSize: 10, ApproximateKeys: 10,
	}
	return nil
}

// report sends the heartbeats of all stores and of the region; after an error it looks for PD's leader again.
func (all *tikv) report() {
	all.Lock()
	defer all.Unlock()
	if all.region == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	now := uint64(time.Now().Unix())
	for _, store := range all.stores {
		stats := &pdpb.StoreStats{
			StoreId: store.Id, Capacity: capacity, Available: capacity, RegionCount: 1,
			StartTime: uint32(store.StartTimestamp), SlowScore: 1,
			Interval: &pdpb.TimeInterval{StartTimestamp: now - 1, EndTimestamp: now},
		}
		request := &pdpb.StoreHeartbeatRequest{Header: all.header(), Stats: stats}
		if _, err := all.pd.StoreHeartbeat(ctx, request); err != nil {
			_ = all.connect(ctx)
			return
		}
	}
	all.region.Header = all.header()
	if err := all.stream.Send(all.region); err != nil {
		_ = all.connect(ctx)
	}
}

func (all *tikv) obey(stream pdpb.PD_RegionHeartbeatClient) {
	for {
		order, err := stream.Recv()
		if err != nil {
			return
		}
		all.Lock()
		if all.region != nil && order.RegionId == all.region.Region.Id {
			all.carryOut(order)
		}
		all.Unlock()
	}
}

// carryOut moves peers and leader at once, as if there were no data to copy.
func (all *tikv) carryOut(order *pdpb.RegionHeartbeatResponse) {
	region := all.region.Region
	if change := order.ChangePeer; change != nil {
		all.change(change, false)
		region.RegionEpoch.ConfVer++
	}
	if joint := order.ChangePeerV2; joint != nil {
		if len(joint.Changes) == 0 {
			leaveJoint(region)
			region.RegionEpoch.ConfVer++
		}
		for _, change := range joint.Changes {
			all.change(change, len(joint.Changes) > 1)
			region.RegionEpoch.ConfVer++
		}
	}
	if order.TransferLeader != nil {
		all.region.Leader = order.TransferLeader.Peer
		all.region.Term++
	}
	for _, peer := range region.Peers {
		if peer.StoreId == all.region.Leader.StoreId {
			all.region.Leader = peer
		}
	}
}

func (all *tikv) change(change *pdpb.ChangePeer, joint bool) {
	region, role := all.region.Region, metapb.PeerRole_Voter
	if change.ChangeType == eraftpb.ConfChangeType_AddLearnerNode {
		role = metapb.PeerRole_Learner
	}
	for number, peer := range region.Peers {
		if peer.StoreId != change.Peer.StoreId {
			continue
		}
		switch {
		case change.ChangeType == eraftpb.ConfChangeType_RemoveNode:
			region.Peers = append(region.Peers[:number:number], region.Peers[number+1:]...)
		case joint && role == metapb.PeerRole_Voter:
			peer.Role = metapb.PeerRole_IncomingVoter
		case joint:
			peer.Role = metapb.PeerRole_DemotingVoter
		default:
			peer.Role = role
		}
		return
	}
	region.Peers = append(region.Peers, &metapb.Peer{Id: change.Peer.Id, StoreId: change.Peer.StoreId, Role: role})
}

func leaveJoint(region *metapb.Region) {
	for _, peer := range region.Peers {
		switch peer.Role {
		case metapb.PeerRole_IncomingVoter:
			peer.Role = metapb.PeerRole_Voter
		case metapb.PeerRole_DemotingVoter:
			peer.Role = metapb.PeerRole_Learner
		}
	}
}

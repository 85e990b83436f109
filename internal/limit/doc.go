// SPDX-License-Identifier: Apache-2.0

// Package limit has the type of the sizes that make the library switch to another way to the same
// result, for example the capacity of a reused buffer, the number of elements that are compared one
// by one, or the size that triggers the cleaning of a cache. A limit that changes a result, such as
// a bound on a client's requests, is not a Size.
//
// A fault behind such a size is seen by large meshes only, so that tests lower all of them by one
// switch: testmain.Lowered runs models of a package with sizes of at most 1 and 3. Set
// PILOTKIT_LIMIT=1 to do so for any test.
//
// # Catalogue
//
// These are all sizes, with the tests that cross them; a test without a folder is in that of its size.
//
//	aggregate.maxExpected                        256  TestLoweredSizes
//	configstore/etcd.listPage                   1000  TestLoweredSizes
//	configstore/kube/gatewayapi.maxEmptied        64  TestLoweredSizes
//	configstore/memory.maxKept                    64  TestLoweredSizes
//	configstore/memory.watchChunk                 64  TestLoweredSizes
//	internal/cow.fillLeaf                         96  TestLoweredSizes
//	internal/cow.maxLeaf                         128  TestLoweredSizes
//	internal/cow.minLeaf                          32  TestLoweredSizes
//	internal/listing.minRoom                      64  TestLoweredSizes
//	internal/listing.resolveLocked                32  TestLoweredSizes
//	internal/notify.maxKept                     4096  TestLoweredSizes
//	internal/notify.maxKeptBatch                 256  TestLoweredSizes
//	registry.maxUnlisted                           4  TestLoweredSizes
//	registry/internal/publish.maxSpare           256  registry/serviceentry.TestLoweredSizes
//	registry/serviceentry.addressBlock             8  TestLoweredSizes
//	registry/serviceentry.few                      4  TestLoweredSizes
//	registry/serviceentry.maxSpare               256  TestLoweredSizes TestAfterLargeBatch
//	xdsupdate.maxSpare                            64  TestLoweredSizes TestCallsWithoutEnd
//	xdsupdate/ads.largeSize                     1024  TestLoweredSizes
//	xdsupdate/ads.manyChanges                   1000  TestLoweredSizes
//	xdsupdate/ads.maxRecalled                     16  TestLoweredSizes
//	xdsupdate/ads.partSize                       256  TestLoweredSizes TestDivided
//	xdsupdate/ads/internal/acks.maxUnanswered  32  xdsupdate/ads.TestLoweredSizes TestFull
//	xdsupdate/ads/internal/pace.sweepAtLeast      64  xdsupdate/ads.TestLoweredSizes
//	xdsupdate/ads/internal/shared.sweepAtLeast  1024  xdsupdate/ads.TestLoweredSizes TestSwept
//	xdsupdate/ads/internal/trial.maxAlone         16  TestLoweredSizes
//	xdsupdate/traffic.maxKeptPlaces               64  TestLoweredSizes TestKeptPlacesAreBounded
//	xdsupdate/traffic.maxShared                  256  TestLoweredSizes
//	xdsupdate/traffic/internal/hostname.FewHosts  16  xdsupdate/traffic.TestLoweredSizes TestHostSet
//	xdsupdate/traffic/internal/memo.most  16384  xdsupdate/traffic.TestLoweredSizes TestBounded
//	xdsupdate/traffic/internal/mesh.fewPorts  16  xdsupdate/traffic.TestLoweredSizes TestManyPorts
//	xdsupdate/traffic/internal/mesh.leastAsked  4096  xdsupdate/traffic.TestLoweredSizes
//	xdsupdate/traffic/internal/mesh.maxBaseAge  64  xdsupdate/traffic.TestLoweredSizes xdsupdate/traffic.TestImportsAfterManyPushes
//	xdsupdate/traffic/internal/mesh.maxBaseChanges  256  xdsupdate/traffic.TestLoweredSizes
//	xdsupdate/traffic/internal/objects.fewChanges  64  xdsupdate/traffic.TestLoweredSizes xdsupdate/traffic.TestServicesAfterManyObjects
//	xdsupdate/traffic/route.maxNames            1000  TestMergedChanges
package limit

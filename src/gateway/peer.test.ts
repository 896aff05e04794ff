import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { peerOf } from './peer.ts';

const PROXIES = ['10.0.0.0/24', '2001:db8:ffff::/48', '127.0.0.1'];
const request = (remoteAddress: string, headers: Readonly<Record<string, string>> = {}) =>
  ({ socket: { remoteAddress }, headers }) as unknown as IncomingMessage;
const forwarded = (value: string) => ({ 'x-forwarded-for': value });

const cases: readonly {
  readonly name: string;
  readonly from: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly proxies?: readonly string[];
  readonly key: string;
  readonly isLocal?: boolean;
  readonly isForwarder?: boolean;
}[] = [
  { name: 'this machine', from: '127.0.0.1', key: '127.0.0.1', isLocal: true },
  { name: 'this machine on a socket for both families', from: '::ffff:127.0.0.1', key: '127.0.0.1', isLocal: true },
  { name: 'this machine by IPv6', from: '::1', key: '::1', isLocal: true },
  { name: 'a page here', from: '127.0.0.1', headers: { origin: 'http://a' }, key: 'page http://a', isLocal: true },
  { name: 'a page elsewhere', from: '192.0.2.7', headers: { origin: 'http://a' }, key: '192.0.2.7' },
  { name: 'IPv6 counts by its /64', from: '2001:db8:1:2:3:4:5:6', key: '2001:db8:1:2::/64' },
  { name: 'however it is written', from: '2001:0DB8:0001:2::9', key: '2001:db8:1:2::/64' },
  { name: 'with zeros left out', from: '2001:db8::1', key: '2001:db8:0:0::/64' },
  { name: 'and a zone', from: 'fe80::1%eth0', key: 'fe80:0:0:0::/64' },
  { name: 'a socket that is gone', from: '', key: 'unknown' },
  {
    name: 'B07: a forged header from this machine',
    from: '127.0.0.1',
    proxies: [],
    headers: forwarded('127.0.0.1'),
    key: '127.0.0.1',
    isForwarder: true,
  },
  {
    name: 'B07: X-Real-IP',
    from: '127.0.0.1',
    proxies: [],
    headers: { 'x-real-ip': '::1' },
    key: '127.0.0.1',
    isForwarder: true,
  },
  {
    name: 'B07: Forwarded',
    from: '192.0.2.7',
    headers: { forwarded: 'for=127.0.0.1' },
    key: '192.0.2.7',
    isForwarder: true,
  },
  { name: 'a trusted proxy', from: '10.0.0.5', headers: forwarded('203.0.113.9'), key: '203.0.113.9' },
  {
    name: 'a trusted proxy over IPv6',
    from: '2001:db8:ffff::1',
    headers: forwarded('2001:db8:9::1'),
    key: '2001:db8:9:0::/64',
  },
  { name: 'a chain of them', from: '10.0.0.5', headers: forwarded('203.0.113.9, 10.0.0.6'), key: '203.0.113.9' },
  {
    name: 'what the client wrote left of it',
    from: '10.0.0.5',
    headers: forwarded('127.0.0.1, 203.0.113.9'),
    key: '203.0.113.9',
  },
  {
    name: 'a trusted proxy here makes nobody local',
    from: '127.0.0.1',
    headers: forwarded('127.0.0.1'),
    key: '127.0.0.1',
  },
  { name: 'nor does a loopback address from outside', from: '10.0.0.5', headers: forwarded('::1'), key: '::1' },
  { name: 'left of nonsense nothing counts', from: '10.0.0.5', headers: forwarded('203.0.113.9, _x'), key: '10.0.0.5' },
  { name: 'an empty header', from: '10.0.0.5', headers: forwarded(''), key: '10.0.0.5' },
];
for (const { name, from, headers = {}, proxies = PROXIES, key, isLocal = false, isForwarder = false } of cases)
  test(`T3: peer: ${name}`, () =>
    assert.deepEqual(peerOf(request(from, headers), proxies), { key, isLocal, isForwarder }));

"""The proxy beside one plain redis-server: the same generated commands to both, and every answer compared.

resp      a raw client: frames replies and keeps their bytes; commands as arrays or inline
grammar   one line a form of each command of Redis 7.0, and what makes commands from it
batch     commands in an order: data, single commands, transactions
known     the tables of what differs: how each is compared, what is refused, what is not served yet
bench     the two sides, a batch of commands on both, the comparison of all their data, the shortest reproduction
"""

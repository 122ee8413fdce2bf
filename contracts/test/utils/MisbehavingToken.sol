// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice What a {MisbehavingToken} does when it is asked to pull, or to transfer.
enum Behaviour {
    /// Moves the value.
    Correct,
    /// Reports success and moves nothing.
    Nothing,
    /// Keeps a hundredth.
    Fee,
    /// Takes a hundredth more than asked from the sender.
    Surcharge,
    /// Reverts without a reason.
    RevertSilently,
    /// Returns false.
    ReturnFalse,
    /// Returns nothing at all, as USDT's transfer does.
    ReturnNothing,
    /// Succeeds with a return value of 100,000 bytes.
    ReturnBomb,
    /// Reverts with 100,000 bytes.
    RevertBomb,
    /// Burns all the gas it is given.
    Burn,
    /// Moves the value, and uses 110,000 gas more than that takes.
    Expensive,
    /// Calls `target` with `data`, and reverts with what that reverts with.
    Call
}

/// @title A token that trusts every signature and breaks every other rule on demand
contract MisbehavingToken {
    mapping(address account => uint256) private _balances;
    mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;

    Behaviour public onPull;
    Behaviour public onTransfer;
    bool public silentWhenUsed;
    bool public balanceUnavailable;
    bool public decimalsUnavailable;
    address public target;
    bytes public data;
    uint256 private _decimals = 6;

    error Used();

    function mint(address to, uint256 value) external {
        _balances[to] += value;
    }

    function seize(address from, uint256 value) external {
        _balances[from] -= value;
    }

    function behave(Behaviour onPull_, Behaviour onTransfer_) external {
        onPull = onPull_;
        onTransfer = onTransfer_;
    }

    /// @dev As Paxos' tokens do.
    function beSilentWhenUsed() external {
        silentWhenUsed = true;
    }

    function hideBalances() external {
        balanceUnavailable = true;
    }

    function setDecimals(uint256 decimals_) external {
        _decimals = decimals_;
    }

    function hideDecimals() external {
        decimalsUnavailable = true;
    }

    function callOut(address target_, bytes calldata data_) external {
        target = target_;
        data = data_;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256,
        uint256,
        bytes32 nonce,
        bytes calldata
    ) external {
        if (authorizationState[from][nonce]) {
            if (silentWhenUsed) return;
            revert Used();
        }
        authorizationState[from][nonce] = true;
        _move(onPull, from, to, value);
    }

    /// @dev For Permit2. Needs no allowance.
    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        _move(onPull, from, to, value);
        return onPull != Behaviour.ReturnFalse;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(onTransfer, msg.sender, to, value);
        return onTransfer != Behaviour.ReturnFalse;
    }

    function balanceOf(address account) external view returns (uint256) {
        require(!balanceUnavailable, "no balances");
        return _balances[account];
    }

    function decimals() external view returns (uint256) {
        require(!decimalsUnavailable, "no decimals");
        return _decimals;
    }

    // forge-lint: disable-next-line(mixed-case-function)
    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return keccak256(abi.encode(address(this)));
    }

    function _move(Behaviour behaviour, address from, address to, uint256 value) private {
        if (behaviour == Behaviour.Nothing || behaviour == Behaviour.ReturnFalse) return;
        if (behaviour == Behaviour.RevertSilently) _end(false, 0);
        if (behaviour == Behaviour.RevertBomb) _end(false, 100_000);
        if (behaviour == Behaviour.Burn) _burnGas();
        if (behaviour == Behaviour.Expensive) _useGas(110_000);
        if (behaviour == Behaviour.Call) _callOut();

        _balances[from] -= behaviour == Behaviour.Surcharge ? value + value / 100 : value;
        _balances[to] += behaviour == Behaviour.Fee ? value - value / 100 : value;

        if (behaviour == Behaviour.ReturnNothing) _end(true, 0);
        if (behaviour == Behaviour.ReturnBomb) _end(true, 100_000);
    }

    function _callOut() private {
        (bool success, bytes memory result) = target.call(data);
        if (success) return;
        assembly ("memory-safe") {
            revert(add(result, 0x20), mload(result))
        }
    }

    function _useGas(uint256 amount) private view {
        uint256 start = gasleft();
        while (start - gasleft() < amount) {}
    }

    function _burnGas() private pure {
        assembly ("memory-safe") {
            invalid()
        }
    }

    function _end(bool success, uint256 size) private pure {
        assembly ("memory-safe") {
            // Not zero, so that a return value of these bytes reads as true.
            let result := mload(0x40)
            mstore(result, 1)
            if success { return(result, size) }
            revert(result, size)
        }
    }
}

// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
pragma abicoder v1;

/**
 * @title The proxy in front of {MockUSDC}
 * @notice Behaves as Circle's FiatTokenProxy, an AdminUpgradeabilityProxy of zeppelinos: two slots are read and the
 * call is delegated, which is what a payment in USDC pays for beside the token's own work. The admin, and no other,
 * can change the implementation; it cannot call the token.
 * @dev Unlike the original the constructor names the admin, and initializes the token in the same call.
 */
contract MockUSDCProxy {
    // keccak256("org.zeppelinos.proxy.implementation")
    bytes32 private constant IMPLEMENTATION_SLOT =
        0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3;

    // keccak256("org.zeppelinos.proxy.admin")
    bytes32 private constant ADMIN_SLOT = 0x10d6a54a4754c8869d6886b5f5d7fbfa5b4522237ea5c60d11bc4e7a1ff9390b;

    // What the original, compiled by an older compiler, spends more on a call.
    uint256 private constant EXTRA_GAS = 200;

    event Upgraded(address implementation);
    event AdminChanged(address previousAdmin, address newAdmin);

    /// @dev The admin's functions are the token's, should it have one of that name, for all others.
    modifier ifAdmin() {
        if (msg.sender == _load(ADMIN_SLOT)) {
            _;
        } else {
            _fallback();
        }
    }

    /// @param implementation_ The token's code.
    /// @param admin_ Can change the implementation, and cannot call the token.
    /// @param initialization Calldata for the token, to be run with this contract's storage.
    constructor(address implementation_, address admin_, bytes memory initialization) {
        _setImplementation(implementation_);
        _store(ADMIN_SLOT, admin_);
        (bool success, bytes memory reason) = implementation_.delegatecall(initialization);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(reason, 0x20), mload(reason))
            }
        }
    }

    fallback() external payable {
        _fallback();
    }

    function changeAdmin(address newAdmin) external ifAdmin {
        require(newAdmin != address(0), "Cannot change the admin of a proxy to the zero address");
        emit AdminChanged(_load(ADMIN_SLOT), newAdmin);
        _store(ADMIN_SLOT, newAdmin);
    }

    function upgradeTo(address newImplementation) external ifAdmin {
        _upgradeTo(newImplementation);
    }

    function upgradeToAndCall(address newImplementation, bytes calldata data) external payable ifAdmin {
        _upgradeTo(newImplementation);
        (bool success,) = address(this).call{value: msg.value}(data);
        require(success);
    }

    function admin() external view returns (address) {
        return _load(ADMIN_SLOT);
    }

    function implementation() external view returns (address) {
        return _load(IMPLEMENTATION_SLOT);
    }

    function _upgradeTo(address newImplementation) private {
        _setImplementation(newImplementation);
        emit Upgraded(newImplementation);
    }

    function _setImplementation(address newImplementation) private {
        require(
            newImplementation.code.length > 0, "Cannot set a proxy implementation to a non-contract address"
        );
        _store(IMPLEMENTATION_SLOT, newImplementation);
    }

    function _fallback() private {
        require(msg.sender != _load(ADMIN_SLOT), "Cannot call fallback function from the proxy admin");
        address target = _load(IMPLEMENTATION_SLOT);
        uint256 extra = EXTRA_GAS;
        assembly {
            for { let end := sub(gas(), extra) } gt(gas(), end) {} {}
            // All of memory is taken: nothing of this contract runs after.
            calldatacopy(0, 0, calldatasize())
            let success := delegatecall(gas(), target, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if success { return(0, returndatasize()) }
            revert(0, returndatasize())
        }
    }

    function _store(bytes32 slot, address value) private {
        assembly ("memory-safe") {
            sstore(slot, value)
        }
    }

    function _load(bytes32 slot) private view returns (address value) {
        assembly ("memory-safe") {
            value := sload(slot)
        }
    }
}
